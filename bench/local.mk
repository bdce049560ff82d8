# Built by `make bench-programs`; each prints as its last line `NAME ratio=VALUE`.
BENCHES = bench/store
EXTRA_PROGRAMS += $(BENCHES)
CLEANFILES += $(BENCHES)
.PHONY: bench-programs
bench-programs: $(BENCHES)

bench_store_SOURCES = bench/store.c
bench_store_LDADD = $(STORE_LIBS)
