// Package verdict says what a job file means to the tuner.
//
// In come a file's name, text and variables; out goes an api.Verdict: the policy
// that is understood, defaults included, and when each knob can act under the
// schedulers and the site's policy that it is held against, or every error with file,
// line and column. The command and the controller's API say the same by it. It never
// reads a file.
package verdict
