// Package measure reads what processes and machines have used, for benches that print it.
//
// Input: a process id, times and a deadline. Output: CPU time and memory as /proc has
// them, the description of the machine with its load, and quantiles. It judges nothing.
package measure
