// Package demo shows the whole way of a job on this machine with real processes:
// it starts an exporter and a controller of its own in a temporary directory,
// submits real jobs, and reports what tuning brought.
//
// In come the paths of the programs; out go the jobs' states while they run and
// one Report at the end. Nothing of an installed controller is touched, and
// nothing is left behind but what Config.Keep asks for. The numbers are those
// that the controller measured; the demo only pairs them up.
package demo
