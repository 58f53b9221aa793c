// Package whatif estimates from a log of jobs what tuning would have brought a site.
//
// Input: a log as sacct prints it and a cluster. Output: a report: core-hours, mean wait and mean bounded
// slowdown as simulated without us, and with fewer cores, less memory, limits by forecast, idle cores shared, and
// all together, each with an interval and the assumptions.
//
// A job is changed by what runs of its kind (user and name; without a name, user, cores and limit) had shown that
// ended before its submission, never by hindsight. No log says how long it takes on fewer cores: a program that keeps
// k of its c cores busy may be narrow, and as fast on k cores, or follow Amdahl's law (1967), and be slower on any fewer.
// Both are bounds as long as the speed is a concave function of the cores, and runs of the kind at other sizes
// bring them nearer. Cores are taken away only where even the worse bound slows the job by at most a tenth, and
// where both agree on what is saved to within a fifth; elsewhere only a trial can show it.
//
// The package is pure; what is random has a fixed seed.
package whatif
