// Package powercapsim keeps a powercap tree whose energy follows a load, for end-to-end tests
// on machines without RAPL.
//
// The input is a directory and how busy the cores were; the output is files as the kernel's
// intel-rapl driver lays them out, whose counters grow by a linear power model and wrap as the
// hardware's do. A reader sees an old value or a new one, never half of one. The package never
// measures power.
package powercapsim
