const SOUND = { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true };

/** The microphone, and the camera that faces `facing` ("user", "environment", or null for no camera), as one stream and one question to the user. */
export async function openDevices(facing) {
  if (!navigator.mediaDevices) throw new DOMException("", "insecure");
  return navigator.mediaDevices.getUserMedia({ audio: SOUND, video: facing && picture(facing) });
}

export function openCamera(facing) {
  return navigator.mediaDevices.getUserMedia({ video: picture(facing) });
}

export async function countCameras() {
  return (await navigator.mediaDevices.enumerateDevices()).filter(({ kind }) => kind === "videoinput").length;
}

/** Asks for the screen to stay on: a lock to release, or null where the browser has none to give. */
export async function keepAwake() {
  return (await navigator.wakeLock?.request("screen").catch(() => null)) ?? null;
}

function picture(facing) {
  return { facingMode: facing, width: { ideal: 1280 }, height: { ideal: 720 } };
}
