package nomad

import (
	"context"
	"errors"
	"math"
	"net/url"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

// nobody is the id of a job that there never is.
const nobody = "pitchpipe-may-register"

// granted is for how long a right counts that a token had.
const granted = 10 * time.Minute

// mayRegister refuses what only a registration can finish where the token may not
// register: a job that has saved and left by then would not be started again.
func (d *Driver) mayRegister(ctx context.Context, namespace string) error {
	d.mu.Lock()
	fresh := time.Since(d.registers[namespace]) < granted
	d.mu.Unlock()
	if fresh {
		return nil
	}
	if err := d.c.mayRegister(ctx, namespace); err != nil {
		return err
	}
	d.mu.Lock()
	d.registers[namespace] = time.Now()
	d.mu.Unlock()
	return nil
}

// mayRegister asks to register, over a version that a job which is not there does not
// have: Nomad judges the right first, and refuses the request either way.
func (c cluster) mayRegister(ctx context.Context, namespace string) error {
	job := api.NewBatchJob(nobody, nobody, "", 50).AddDatacenter("*")
	job.Region = nil
	job.AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(api.NewTask("t", "raw_exec").SetConfig("command", "true")))
	in := &api.JobRegisterRequest{Job: job, EnforceIndex: true, JobModifyIndex: math.MaxInt64}
	_, err := c.api.Raw().Write("/v1/job/"+url.PathEscape(nobody), in, nil, order(ctx, namespace))
	err = asked("asking for the right to register", registerJob.in(namespace), err)
	if errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrTransient) && !answeredAtAll(err) {
		return err
	}
	return nil // refused for its index, or by something that the registration itself will be told of
}

// answeredAtAll reports whether there was an answer, whatever it was.
func answeredAtAll(err error) bool {
	var answer api.UnexpectedResponseError
	return errors.As(err, &answer) && answer.HasStatusCode()
}
