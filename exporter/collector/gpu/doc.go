// Package gpu tells what the node's NVIDIA GPUs do and which job does it.
//
// In come readings: of the helper program pitchpipe-gpu, which may load the vendor's
// library and is a process of its own, so that a driver that hangs hangs nobody else;
// where that gives none, of one long-lived nvidia-smi; where that gives none, of a
// dcgm-exporter on this machine. Out come joules, watts, busy share and memory of each
// GPU, and of each job its share.
//
// Joules are the driver's own counter where it has one. A counter that goes back was
// begun anew, with the driver, and what it shows then is all that is known of the time
// since. Without a counter the power is integrated over readings that are close enough
// to each other; a longer gap is not bridged and its time is not covered. The sensor of
// recent data centre GPUs looks at a part of the time only: the figure is the driver's,
// not a meter's.
//
// A GPU belongs to the jobs whose processes are on it. Of one that several use, each has
// the share of its processes in all of them, and where it is split into instances first
// the share of the instance's multiprocessors in those of all instances with processes.
// A GPU without processes is nobody's: one that a job was given and does not use is not
// charged to it: it is the system's. Where processes cannot be seen, no job is charged with
// anything. What a job is charged with here is part of its joules; while the energy of one
// of its GPUs is not known, both are missing.
//
// A GPU that cannot be read at all, as one that fell off the bus, is named as missing, and
// takes no other with it; for a minute its joules are not known, then it is gone. A reading
// is of the moment in which it is heard of, whatever clock its program goes by.
//
// What a GPU cannot tell is missing, with the reason, and never zero. The package never
// loads a library itself, and never changes anything about a GPU.
package gpu
