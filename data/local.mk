# The models that ship: data/models/NAME is installed as $(pkgdatadir)/models/NAME, where the
# daemon looks by default.
MODEL_FILES = $(wildcard $(srcdir)/data/models/*/*)
EXTRA_DIST += $(MODEL_FILES)

install-data-local:
	@for f in $(MODEL_FILES); do \
	    to="$(DESTDIR)$(pkgdatadir)/models/$$(basename "$$(dirname "$$f")")"; \
	    $(MKDIR_P) "$$to" && $(INSTALL_DATA) "$$f" "$$to" || exit 1; \
	done
uninstall-local:
	@for f in $(MODEL_FILES); do \
	    rm -f "$(DESTDIR)$(pkgdatadir)/models/$$(basename "$$(dirname "$$f")")/$$(basename "$$f")"; \
	done
