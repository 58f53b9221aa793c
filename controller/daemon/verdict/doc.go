// Package verdict checks what a job file means to the tuner.
//
// In go a file's name, text and variables; out comes an api.Verdict: the policy, defaults
// included, and when each knob can act under the scheduler and the site's policy, or every
// error with file, line and column. The command and the controller's API share it. It never
// reads a file.
package verdict
