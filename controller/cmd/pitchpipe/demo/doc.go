// Package demo tunes real jobs on this machine and compares them with untuned ones: it starts
// an exporter and a controller of its own in a temporary directory.
//
// In go the paths of the programs. Out come the states of the jobs and one Report of the
// controller's own numbers. The package never touches an installed controller, and leaves
// nothing behind but what Config.Keep asks for.
package demo
