// Pitchpipe-gpu writes what the node's NVIDIA GPUs do, one JSON object of package card a line,
// until it is stopped or its output is closed. The exporter starts it, and kills it when it
// falls silent: a call into a driver that hangs does not return, and stops only this program.
//
// Input: the path of NVIDIA's management library, which is loaded while the program runs; so this
// is not a static program like the exporter. Output: readings. A function that the library lacks,
// that a GPU does not support or that the caller may not call makes one figure missing, with
// the reason. The program needs the right to open the GPUs' device files for reading, and
// never changes a clock, limit, mode or counter.
package main
