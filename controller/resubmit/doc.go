// Package resubmit carries a decision to the scheduler.
//
// In comes the owner's policy and the settings that were decided; out goes a
// driver.Intent that says the same in the driver's terms, and then one step of it
// at a time. The caller makes the intent durable before the first Step and each
// step's result after it; after a crash it calls Step with the same intent again.
// The package never decides, never writes anything itself, and never turns an
// error whose outcome is unknown into a second effect: it says so and is called
// again.
package resubmit
