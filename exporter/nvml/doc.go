// Package nvml asks NVIDIA's management library what the node's GPUs do.
//
// The input is the path of the library, which is loaded while the program runs; the output is
// readings as package card has them. A function that the library lacks, that a GPU does not
// support or that the caller may not call makes one figure missing, with the reason. The
// package never changes a clock, limit, mode or counter.
//
// A call into a driver that hangs does not return. That is why only the helper program
// imports this package, and why the exporter ends a helper that falls silent.
package nvml
