package broker

import (
	"os"
	"regexp"
	"testing"
	"time"
)

func TestHowOftenALogTellsOfRefusals(t *testing.T) {
	t.Parallel()
	var c complaints
	now := time.Now()
	told := 0
	for range 50 {
		if tell, _ := c.add(now); tell {
			told++
		}
	}
	if told != maxComplaints {
		t.Errorf("%d of 50 were told, want %d", told, maxComplaints)
	}
	if tell, kept := c.add(now.Add(complaintsPeriod)); !tell || kept != 30 {
		t.Errorf("a minute later: told %t, %d before it were not, want 30", tell, kept)
	}
	if tell, kept := c.add(now.Add(complaintsPeriod)); !tell || kept != 0 {
		t.Errorf("and then: told %t, %d before it were not, want none", tell, kept)
	}
}

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
