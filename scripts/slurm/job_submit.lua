-- job_submit.lua: for a site that does not have its own. A site that has one takes the marked
-- lines over into it. It belongs into the folder of slurm.conf, with JobSubmitPlugins=lua there.

-- >>> pitchpipe
-- A job whose stanza is faulty: "reject" refuses it, "warn" submits it untuned with a message.
local pitchpipe_on_fault = "reject"
local pitchpipe_folder = "/etc/slurm/pitchpipe" -- where the module was installed

package.path = pitchpipe_folder .. "/?.lua;" .. package.path
local pitchpipe_found, pitchpipe = pcall(require, "pitchpipe")
if not pitchpipe_found then
  slurm.log_error("%s", "pitchpipe: jobs are accepted untuned: " .. tostring(pitchpipe))
end
-- <<< pitchpipe

function slurm_job_submit(job_desc, part_list, submit_uid)
  -- >>> pitchpipe
  if pitchpipe_found then
    local called, rc = pcall(function() return pitchpipe.submit(job_desc, pitchpipe_on_fault) end)
    if not called then slurm.log_error("%s", "pitchpipe: the job is accepted as it is: " .. tostring(rc)) end
    if rc == slurm.ERROR then return rc end
  end
  -- <<< pitchpipe
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
