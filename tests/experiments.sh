#!/bin/sh
# The numbers of docs/choosing-a-rule.md that an independent program found, too.
exec "$top_builddir/experiments/memory/lab" named
