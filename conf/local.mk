# Settings and the systemd unit; both name the places that configure chose.
EXTRA_DIST += systemd/fastweightd.service.in
dist_man_MANS = conf/fastweightd.8 conf/fwctl.1

fwconfdir = $(sysconfdir)/fastweightd
dist_fwconf_DATA = conf/fastweightd.conf

if SYSTEMD_UNITS
nodist_systemdsystemunit_DATA = systemd/fastweightd.service
endif
CLEANFILES += systemd/fastweightd.service
systemd/fastweightd.service: systemd/fastweightd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && $(SED) -e 's,@sbindir\@,$(sbindir),g' \
	    -e 's,@sysconfdir\@,$(sysconfdir),g' $(srcdir)/systemd/fastweightd.service.in > $@.tmp && mv $@.tmp $@

check_DATA += systemd/fastweightd.service
dist_check_SCRIPTS += tests/unit-security.sh
