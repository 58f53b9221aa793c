// Package benchexporter measures what the exporter costs: how long a scrape takes, what
// CPU time scrapes and sampling take, its memory, descriptors and size, against Debian's
// prometheus-node-exporter with the same sources on the same machine in the same run.
//
// The input is the two programs and a workload, which is so many jobs of so many processes
// each; the output is a report with the bars of that workload. The jobs are cgroups of sleeping processes, and a simulated powercap
// tree has joules. It needs root, for cgroups and perf events, and leaves nothing behind.
package benchexporter
