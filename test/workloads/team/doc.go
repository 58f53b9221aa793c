// Package team runs the pieces of one loop on a fixed number of goroutines.
//
// In come a number of pieces and a function for each; out come nothing or one
// number a piece, put together in the order of the pieces. How a loop is cut
// never depends on the number of threads, so a sum is the same number, bit for
// bit, on one thread and on many. Its goroutines end soon after the last loop
// by themselves. It never decides how many threads there should be.
package team
