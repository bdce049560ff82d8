# Built by `make bench-programs`; each prints as its last line `NAME ratio=VALUE`.
BENCHES = bench/store bench/delta bench/rules bench/length
EXTRA_PROGRAMS += $(BENCHES)
CLEANFILES += $(BENCHES)
.PHONY: bench-programs
bench-programs: $(BENCHES)

bench_store_SOURCES = bench/store.c
bench_store_LDADD = $(STORE_LIBS)

bench_delta_SOURCES = bench/delta.c
bench_delta_CPPFLAGS = $(AM_CPPFLAGS) $(BLAS_CFLAGS)
bench_delta_LDADD = $(MEMORY_LIBS)

bench_rules_SOURCES = bench/rules.c bench/stream.c bench/stream.h
bench_rules_LDADD = $(MEMORY_LIBS)

bench_length_SOURCES = bench/length.c bench/stream.c bench/stream.h
bench_length_LDADD = $(MEMORY_LIBS)
