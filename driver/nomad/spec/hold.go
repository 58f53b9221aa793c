package spec

import (
	"fmt"
	"time"

	"github.com/hashicorp/nomad/api"
)

// Hold makes of a job one that Nomad starts at a time by itself: a periodic job whose
// schedule has one second in it. What runs then is its child. The time is that of the
// second that has begun by at or the next; it is returned.
func Hold(job *api.Job, at time.Time) (*api.Job, time.Time, error) {
	held, err := Clone(job)
	if err != nil {
		return nil, time.Time{}, err
	}
	if rounded := at.Truncate(time.Second); rounded.Before(at) {
		at = rounded.Add(time.Second)
	}
	at = at.UTC()
	yes := true
	kind, zone := api.PeriodicSpecCron, "UTC"
	held.Periodic = &api.PeriodicConfig{
		Enabled: &yes, ProhibitOverlap: &yes, SpecType: &kind, TimeZone: &zone,
		// Seconds, minutes, hours, day, month, day of the week, year.
		Specs: []string{fmt.Sprintf("%d %d %d %d %d * %d", at.Second(), at.Minute(), at.Hour(), at.Day(), int(at.Month()), at.Year())},
	}
	return held, at, nil
}
