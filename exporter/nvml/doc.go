// Package nvml asks NVIDIA's management library what the node's GPUs do.
//
// In comes the path of the library, which is loaded while the program runs and need not
// be there when it is built; out come readings in the words of package card. A function
// that the library lacks, that a GPU does not support or that the caller may not call
// makes the one figure missing, with the reason, and no other.
//
// A call into a driver that hangs does not come back. That is why only the helper
// program imports this package, and why whoever reads the helper ends it when it falls
// silent. The package only reads: it changes no clock, limit, mode or counter.
package nvml
