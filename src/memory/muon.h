/* muon.h - Newton-Schulz orthogonalisation of a matrix. */
#ifndef MUON_H
#define MUON_H

#include <stddef.h>

#define FW_MUON_MAX 256 /* rows and columns: its scratch lies on the stack, 1 MiB */

/* X = NS5(Z), both (rows, cols): singular values pushed towards 1, five iterations. */
void fw_muon(const float *Z, size_t rows, size_t cols, float *X);

#endif
