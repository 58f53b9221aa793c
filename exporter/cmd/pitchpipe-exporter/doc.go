// Command pitchpipe-exporter samples the jobs of a node and serves jobs, samples,
// progress marks and metrics. It runs without root with fewer sources, and says
// which ones are missing and why.
package main
