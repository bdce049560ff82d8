noinst_LIBRARIES += src/libhttp.a
src_libhttp_a_CPPFLAGS = $(AM_CPPFLAGS) $(MHD_CFLAGS)
src_libhttp_a_SOURCES = src/http/body.c src/http/call.c src/http/head.c src/http/linger.c src/http/listen.c \
	src/http/media.c src/http/path.c src/http/server.c src/http/stats.c src/http/stream.c \
	src/http/call.h src/http/linger.h src/http/listen.h src/http/media.h src/http/path.h include/fastweight/http.h
HTTP_LIBS = src/libhttp.a $(BASE_LIBS) $(MHD_LIBS)

UNIT_TESTS += src/http/listen_test src/http/media_test src/http/path_test src/http/server_test src/http/stream_test
src_http_listen_test_LDADD = $(HTTP_LIBS) $(CHECK_LIBS)
src_http_media_test_LDADD = $(HTTP_LIBS) $(CHECK_LIBS)
src_http_path_test_LDADD = $(HTTP_LIBS) $(CHECK_LIBS)
src_http_server_test_LDADD = $(HTTP_LIBS) $(CHECK_LIBS)
src_http_stream_test_LDADD = $(HTTP_LIBS) $(CHECK_LIBS)
