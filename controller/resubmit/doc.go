// Package resubmit translates a decision for the scheduler.
//
// Input: the owner's policy and settings, and the settings that were decided. Output: the
// driver's Change and Intent, and the reason why an intent ended. The package never decides
// and never retries: a step that fails is taken again by the caller.
package resubmit
