// Package gpu knows what the node's NVIDIA GPUs do and which job does it.
//
// Input: readings of the helper program pitchpipe-gpu, a separate process, so that a driver
// that hangs stops nothing else; if that gives none, of one long-lived nvidia-smi. Output:
// joules, watts, busy share and memory of each GPU, and each job's share. The package never loads a library and never changes
// anything about a GPU; what a GPU does not report is missing, with the reason, and never zero.
//
// Joules are the driver's own counter if it has one. Without a counter, power is integrated
// over readings that are close to each other (collector.Bridge), as the busy share is; longer
// gaps are not covered, and the jobs that were on the GPU then have no joules, or no busy seconds,
// until they end: a sum would lack some. The sensor of recent data centre GPUs samples a part of
// the time only.
//
// A GPU belongs to the jobs whose processes are on it, by their share of the processes; a
// split GPU first by the instances' multiprocessors. A GPU without processes is the system's.
// If processes cannot be seen, no job is charged. While the energy of one of a job's GPUs is
// unknown, its GPU joules and its joules are missing.
//
// A GPU that cannot be read, such as one that fell off the bus, is named as missing; for a
// minute its joules are unknown, then it is gone.
package gpu
