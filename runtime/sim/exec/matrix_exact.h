// Exact dot products: the sum of c and all a[i] * b[i] as if to unlimited width, rounded once to nearest even. Infinite
// and NaN operands follow IEEE. Compiled once, so that every instruction set gives the same bits.
#pragma once

namespace zyfa::sim {

float exact_dot(int count, const double* a, const double* b, float c);
double exact_dot(int count, const double* a, const double* b, double c);

}  // namespace zyfa::sim
