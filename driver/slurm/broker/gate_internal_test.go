package broker

import (
	"os"
	"regexp"
	"testing"
	"time"
)

// TestTheUnitWaitsForWhatBegan keeps the service's time to end above the broker's own.
func TestTheUnitWaitsForWhatBegan(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../../scripts/package/pitchpipe-broker.service")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^TimeoutStopSec=(\w+)$`).FindSubmatch(unit)
	if m == nil {
		t.Fatal("the unit has no TimeoutStopSec")
	}
	stop, err := time.ParseDuration(string(m[1]))
	if err != nil || stop <= graceful || graceful <= longest {
		t.Errorf("a request takes %v at most, the broker waits %v and the unit %v (%v), want each longer than the one before", longest, graceful, stop, err)
	}
}
