// Package benchexporter measures what the exporter costs: how long a scrape takes, what
// CPU time scrapes and sampling take, its memory, descriptors and size, beside Debian's
// prometheus-node-exporter with the same sources on the same machine in the same run.
//
// In: the two programs and how many jobs of how many processes there are to be. Out:
// a report. The jobs are cgroups of sleeping processes, and a simulated powercap
// tree has joules. It needs root, for cgroups and perf events, and leaves nothing behind.
package benchexporter
