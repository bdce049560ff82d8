# Built by `make bench-programs`; each prints as its last line `NAME ratio=VALUE`.
BENCHES = bench/stream bench/store bench/delta bench/rules bench/length bench/lifetime bench/memory \
	bench/heads bench/http_learner bench/model bench/expert bench/share
EXTRA_PROGRAMS += $(BENCHES)
CLEANFILES += $(BENCHES)
.PHONY: bench-programs
bench-programs: $(BENCHES) bench/http bench/pairs

bench_store_SOURCES = bench/store.c
bench_store_LDADD = $(STORE_LIBS)

bench_delta_SOURCES = bench/delta.c bench/pair_stream.c bench/pair_stream.h
bench_delta_CPPFLAGS = $(AM_CPPFLAGS) $(BLAS_CFLAGS) -DDELTA_TORCH='"$(abs_top_srcdir)/bench/delta_torch.py"'
bench_delta_LDADD = $(MEMORY_LIBS)

noinst_HEADERS += bench/engine_calls.h
bench_lifetime_SOURCES = bench/lifetime.c
bench_lifetime_LDADD = $(ENGINE_LIBS)
bench_share_SOURCES = bench/share.c
bench_share_LDADD = $(ENGINE_LIBS)
bench_memory_SOURCES = bench/memory.c
bench_memory_LDADD = $(ENGINE_LIBS)

bench_stream_SOURCES = bench/stream.c
bench_stream_LDADD = $(STREAM_LIBS)

bench_expert_SOURCES = bench/expert.c
bench_expert_LDADD = $(ENGINE_LIBS)

bench_http_learner_SOURCES = bench/http_learner.c
bench_http_learner_LDADD = $(STREAM_LIBS)
EXTRA_DIST += bench/http.sh bench/ablate.sh bench/pairs.sh
CLEANFILES += bench/http bench/pairs
bench/pairs: bench/pairs.sh src/fastweightd
	$(AM_V_GEN)$(MKDIR_P) bench && cp $(srcdir)/bench/pairs.sh $@.tmp && \
	    chmod +x $@.tmp && mv $@.tmp $@
bench/http: bench/http.sh src/fastweightd bench/http_learner
	$(AM_V_GEN)$(MKDIR_P) bench && $(SED) -e 's,@data\@,$(abs_top_srcdir)/data,' $(srcdir)/bench/http.sh > $@.tmp && \
	    chmod +x $@.tmp && mv $@.tmp $@

bench_model_CPPFLAGS = $(AM_CPPFLAGS) -DMODEL_TORCH='"$(abs_top_srcdir)/bench/model_torch.py"' \
	-DMODEL_TEXT='"$(abs_top_srcdir)/data/prose.txt"'
bench_model_SOURCES = bench/model.c bench/pair_stream.c bench/pair_stream.h
bench_model_LDADD = $(MODEL_LIBS)
EXTRA_DIST += bench/delta_torch.py bench/model_torch.py

bench_rules_SOURCES = bench/rules.c bench/pair_stream.c bench/pair_stream.h
bench_rules_LDADD = $(MEMORY_LIBS)

bench_length_SOURCES = bench/length.c bench/pair_stream.c bench/pair_stream.h
bench_length_LDADD = $(MEMORY_LIBS)

bench_heads_SOURCES = bench/heads.c bench/pair_stream.c bench/pair_stream.h
bench_heads_LDADD = $(MEMORY_LIBS)
