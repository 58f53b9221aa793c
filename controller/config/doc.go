// Package config says what the controller was told: its own settings, and the
// site's policy for jobs.
//
// In come command-line flags, the environment (as a value, not read by itself)
// and two YAML files. Out come a Config and a SitePolicy in which every field
// holds a valid value, or all the faults at once, each with the place where it
// was written, what was found there and what is allowed.
//
// For the controller's settings flags stand over the environment, the environment
// over the file, the file over the defaults. For the site's policy see SitePolicy.
// Both are strict: a key that does not exist is an error and never ignored, since
// a misspelt limit is no limit. One table of keys makes the flags, the names of
// the environment variables, the checks and REFERENCE.md.
//
// The package never watches a file, never writes one, creates no directory but
// that of the state (MakeState), and keeps no state of its own: to read again, call Load again.
package config
