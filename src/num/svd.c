/* svd.c - singular values and vectors by LAPACK (dgesdd), for reports about a memory.
 *
 * LAPACK is column-major: a row-major A is its transpose, which has the same singular values,
 * and whose left vectors are A's right ones, already in rows. */
#include "config.h"

#include "fastweight/num.h"

#include <stdlib.h>

/* The Fortran symbol; its last argument is the hidden length of jobz. */
void dgesdd_(const char *jobz, const int *m, const int *n, double *a, const int *lda, double *s,
             double *u, const int *ldu, double *vt, const int *ldvt, double *work,
             const int *lwork, int *iwork, int *info, size_t jobz_len);

/* jobz N: values only; S: with as many singular vectors as values. */
static int decompose(const char *jobz, size_t rows, size_t cols, double *A, double *U,
                     double *sigma, double *Vt, struct fw_err *err)
{
    size_t min = rows < cols ? rows : cols;
    int m = (int)cols, n = (int)rows, k = (int)min, query = -1, lwork, info = 0;
    double want = 0, *work = NULL;
    int *iwork = malloc(8 * min * sizeof *iwork), ret = -1;

    if (!iwork)
        goto no_memory;
    dgesdd_(jobz, &m, &n, A, &m, sigma, Vt, &m, U, &k, &want, &query, iwork, &info, 1);
    lwork = (int)want;
    work = malloc((size_t)lwork * sizeof *work);
    if (info == 0 && !work)
        goto no_memory;
    if (info == 0)
        dgesdd_(jobz, &m, &n, A, &m, sigma, Vt, &m, U, &k, work, &lwork, iwork, &info, 1);
    ret = info == 0 ? 0 : fw_fail(err, FW_EINTERNAL, "svd_failed", "dgesdd: info %d", info);
    goto out;
no_memory:
    fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for singular values");
out:
    free(work);
    free(iwork);
    return ret;
}

int fw_singular_values(double *A, size_t rows, size_t cols, double *sigma, struct fw_err *err)
{
    return decompose("N", rows, cols, A, NULL, sigma, NULL, err);
}

int fw_singular_factors(double *A, size_t rows, size_t cols, double *U, double *sigma,
                        double *Vt, struct fw_err *err)
{
    return decompose("S", rows, cols, A, U, sigma, Vt, err);
}
