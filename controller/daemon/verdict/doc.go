// Package verdict says what a job file means to the tuner.
//
// In come a file's name, text and variables; out goes an api.Verdict: the policy
// that is understood, defaults included, or every error with file, line and
// column. The command and the controller's API say the same by it. It never
// reads a file, and knows nothing of a site's policy, which only narrows.
package verdict
