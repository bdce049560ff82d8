# libfastweight.a: the rooms that are usable without the server, in one installed archive. Each
# of them adds its archives to LIBFASTWEIGHT and its headers to fwinclude_HEADERS. They become
# one object whose only global names are fw_*: what rooms share inside cannot clash with the
# names of a program that links it.
fwincludedir = $(includedir)/fastweight
fwlibdir = $(libdir)
fwlib_DATA = libfastweight.a
pkgconfig_DATA = src/fastweight.pc
CLEANFILES += libfastweight.a src/fastweight.o
EXTRA_DIST += tests/library_test.c

libfastweight.a: $(LIBFASTWEIGHT)
	$(AM_V_at)rm -f $@
	$(AM_V_GEN)$(CC) -r -nostdlib -o src/fastweight.o \
	  -Wl,--whole-archive $(LIBFASTWEIGHT) -Wl,--no-whole-archive
	$(AM_V_at)$(OBJCOPY) --wildcard --keep-global-symbol='fw_*' src/fastweight.o
	$(AM_V_at)$(AR) $(ARFLAGS) $@ src/fastweight.o && $(RANLIB) $@

# What was installed serves a program of one's own, found through pkg-config alone.
installcheck-local:
	PKG_CONFIG_PATH='$(DESTDIR)$(pkgconfigdir)' && export PKG_CONFIG_PATH && \
	flags=`$(PKG_CONFIG) --define-variable=prefix='$(DESTDIR)$(prefix)' --cflags --libs fastweight` && \
	$(CC) $(CFLAGS) $(SAN_FLAGS) $(COV_FLAGS) $(LDFLAGS) -o library_test$(EXEEXT) \
	  $(srcdir)/tests/library_test.c $$flags $(LIBS) && \
	./library_test$(EXEEXT) && rm -f library_test$(EXEEXT)
