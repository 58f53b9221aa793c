// Package mergesort sorts random keys with a parallel merge sort.
//
// In come an input number and a seed; out come, per epoch of several sorts of
// fresh keys, the share of neighbours in the wrong order (as loss) and of those in
// the right one (as acc), which a correct sort makes 0 and 1. Every sort allocates
// its arrays anew. Sorted keys are the same on any number of threads.
package mergesort
