package nomadserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/events"
	"pitchpipe/test/nomadserver/state"
)

const heartbeat = 30 * time.Second

// streamEvents sends what changes as lines of JSON until somebody ends it. The end
// says nothing: the last line is whole, and the body is complete.
func streamEvents(c *call) error {
	from, err := strconv.ParseUint(c.query("index"), 10, 64)
	if err != nil && c.query("index") != "" {
		return refuse(http.StatusBadRequest, "Unable to parse index: %v", err)
	}
	want, err := c.topics()
	if err != nil {
		return err
	}
	sub := c.s.events.Subscribe(from, want)
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Cache-Control", "no-cache")
	c.w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(c.w).Flush
	if err := flush(); err != nil {
		return nil //nolint:nilerr // nobody is left to tell
	}
	for {
		batch, err := c.nextBatch(sub)
		line := []byte("{}\n")
		switch {
		case errors.Is(err, context.DeadlineExceeded):
		case err != nil:
			return nil //nolint:nilerr // the silence is the point
		default:
			if line, err = json.Marshal(batch); err != nil {
				return fmt.Errorf("a batch of events: %w", err)
			}
			line = append(line, '\n')
		}
		if _, err := c.w.Write(line); err != nil {
			return nil //nolint:nilerr // the client went away
		}
		if err := flush(); err != nil {
			return nil //nolint:nilerr // the client went away
		}
	}
}

func (c *call) nextBatch(sub *events.Subscription) (events.Batch, error) {
	ctx, cancel := context.WithTimeout(c.r.Context(), heartbeat)
	defer cancel()
	return sub.Next(ctx)
}

// topics reads topic=Name:key; a topic that nobody knows never shows anything.
func (c *call) topics() (func(events.Event) bool, error) {
	want := map[string][]string{}
	for _, t := range c.r.URL.Query()["topic"] {
		name, key, _ := strings.Cut(t, ":")
		if name == "" {
			return nil, refuse(http.StatusBadRequest, "Invalid topic query: Invalid key value pair for topic: %s", t)
		}
		if key == "" {
			key = "*"
		}
		want[name] = append(want[name], key)
	}
	if len(want) == 0 {
		want["*"] = []string{"*"}
	}
	ns := c.namespace()
	if c.s.opts.ACL && !c.may(ns, "read-job") {
		return nil, denied()
	}
	return func(e events.Event) bool {
		if ns != "*" && e.Namespace != "" && e.Namespace != ns || e.Namespace != "" && !c.may(e.Namespace, "read-job") {
			return false
		}
		return slices.ContainsFunc(slices.Concat(want[e.Topic], want["*"]), func(k string) bool {
			return k == "*" || k == e.Key || slices.Contains(e.FilterKeys, k)
		})
	}, nil
}

// eventsOf are the events that a transaction makes.
func eventsOf(c state.Commit) []events.Batch {
	if c.Kind == "" {
		return nil
	}
	var out []events.Batch
	for _, changes := range c.Batches {
		b := events.Batch{Index: c.Index}
		for _, change := range changes {
			e := events.Event{Type: c.Kind, Index: c.Index}
			switch row := change.Row.(type) {
			case *api.Job:
				e.Topic, e.Key, e.Namespace = "Job", *row.ID, *row.Namespace
				e.Payload = map[string]any{"Job": row}
				if change.Deleted {
					e.Payload = map[string]any{"Job": row, "Deleted": true}
				}
			case *api.Evaluation:
				e.Topic, e.Key, e.Namespace = "Evaluation", row.ID, row.Namespace
				e.FilterKeys = []string{row.JobID, row.DeploymentID}
				e.Payload = map[string]any{"Evaluation": row}
			case *api.Allocation:
				a := *row
				a.Job = nil
				e.Topic, e.Key, e.Namespace = "Allocation", a.ID, a.Namespace
				e.FilterKeys = []string{a.JobID, a.DeploymentID}
				e.Payload = map[string]any{"Allocation": &a}
			}
			b.Events = append(b.Events, e)
		}
		if len(b.Events) > 0 {
			out = append(out, b)
		}
	}
	return out
}
