// Package powercapsim keeps a powercap tree whose energy follows a load, for end-to-end tests
// on machines without RAPL.
//
// Input: a directory and how busy the cores were; output: files as the kernel's
// intel-rapl driver lays them out (name, energy_uj, max_energy_range_uj), whose
// counters grow by a linear power model and wrap as the hardware's do. A reader sees
// an old value or a new one, never half of one. The package measures no power: what
// its tree shows is a number that is known, which is what a test needs.
package powercapsim
