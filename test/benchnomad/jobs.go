package benchnomad

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/measure"
)

// nowhere is a constraint that no node meets: a job with it waits, and costs the node
// nothing.
func nowhere() *api.Constraint {
	return &api.Constraint{LTarget: "${node.unique.id}", RTarget: "none", Operand: "="}
}

// foreign is a job that has nothing to do with the tuner.
func foreign(id string) *api.Job {
	job := api.NewBatchJob(id, id, "global", 50)
	job.Datacenters = []string{"*"}
	task := api.NewTask("work", "raw_exec").SetConfig("command", "/bin/true").SetConfig("args", []string{id})
	cpu, memory := 100, 32
	task.Resources = &api.Resources{CPU: &cpu, MemoryMB: &memory}
	return job.Constrain(nowhere()).AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
}

// tuned is a job with a stanza.
func tuned(id string) *api.Job {
	job := foreign(id)
	off, one := false, int64(1)
	job.TaskGroups[0].Scaling = &api.ScalingPolicy{Enabled: &off, Min: &one, Max: &one, Policy: map[string]any{
		"tuning": []map[string]any{{
			"mode":     "apply",
			"knob":     []map[string]any{{"cores": []map[string]any{{"values": []int{1, 2}}}}},
			"progress": []map[string]any{{"pattern": `epoch (?P<epoch>\d+)`, "total": 100}},
		}},
	}}
	return job
}

// register registers a job and returns when the agent had taken it.
func register(ctx context.Context, c *api.Client, job *api.Job) (time.Time, error) {
	if _, _, err := c.Jobs().Register(job, (&api.WriteOptions{}).WithContext(ctx)); err != nil {
		return time.Time{}, fmt.Errorf("register %s: %w", *job.ID, err)
	}
	return time.Now(), nil
}

// fill registers the cluster's jobs.
func fill(ctx context.Context, c *api.Client, jobs, stanzas int) error {
	every := max(jobs/max(stanzas, 1), 1)
	for i := range jobs {
		job := foreign(fmt.Sprintf("foreign-%d", i))
		if i%every == 0 && i/every < stanzas {
			job = tuned(fmt.Sprintf("tuned-%d", i/every))
		}
		if _, err := register(ctx, c, job); err != nil {
			return err
		}
	}
	return nil
}

// others registers a foreign job every second until it is told to stop.
func others(ctx context.Context, c *api.Client) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			if _, err := register(ctx, c, foreign(fmt.Sprintf("other-%d-%d", time.Now().UnixNano(), i))); err != nil && ctx.Err() == nil {
				ended <- err
				return
			}
			if measure.Pause(ctx, time.Second) != nil {
				ended <- nil
				return
			}
		}
	}()
	return func() error {
		cancel()
		return <-ended
	}
}
