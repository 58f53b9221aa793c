// Package jacobi solves Poisson's equation on a square by Jacobi's method.
//
// In come an input number and a seed that place heat sources; out comes, per
// epoch of many sweeps, how far the field still is from the solution: the loss is
// the root mean square residual and acc the share of the first residual that is
// gone. Every sweep reads one grid, writes another and ends with a barrier. The
// result does not depend on the number of threads.
package jacobi
