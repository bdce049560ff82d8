# Built by `make bench-programs`; each prints as its last line `NAME ratio=VALUE`.
BENCH_PROGRAMS = bench/store
EXTRA_PROGRAMS += $(BENCH_PROGRAMS)
CLEANFILES += $(BENCH_PROGRAMS)
.PHONY: bench-programs
bench-programs: $(BENCH_PROGRAMS)

bench_store_SOURCES = bench/store.c
bench_store_LDADD = $(STORE_LIBS)
