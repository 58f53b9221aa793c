// Package probe finds the settings of a job by short runs of it before it is submitted
// once.
//
// In come a job file with the variables that make its work short, its policy, its owner's
// settings, and what starts jobs; out come what was tried, and the settings to submit the
// job with: the best of them, where it is better beyond the noise, else the owner's own.
//
// The owner's settings are tried first, then what package search proposes, one short job
// after the other, each under an id of its own (a request that is repeated is the same
// job) and marked to be left untuned. Epochs are what its output says, by the time at which
// a line was read; joules come from whoever measures them (Config.Measure). Trials are
// judged by package search, as those of a job that is probed while it runs.
//
// What was measured is remembered as soon as a job has ended. Killed at any moment and run
// again, it goes on behind the last one. A job that was stopped is run again, and one that
// ended while nobody read its output: nobody knows when its epochs ended. Where ctx ends the job that runs is
// stopped.
//
// It never submits the job itself, never runs two at a time, and never runs anything but
// what it is told is harmless to be run: only its author knows that.
package probe
