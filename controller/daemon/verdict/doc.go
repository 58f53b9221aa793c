// Package verdict explains what a job file means to the tuner.
//
// Input: a file's name, text and variables. Output: an api.Verdict: the policy, defaults
// included, and when each knob can act under given schedulers and a site's policy; or every
// error with file, line and column. The package never reads a file.
package verdict
