const SOUND = { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true };

/** The microphone, and the camera that faces `facing` ("user", "environment", or null for no camera), as one stream and one question to the user.
 * `chosen` has the ids of the devices that they like best, {microphone, camera}, empty for the browser's own choice. */
export async function openDevices(facing, chosen) {
  if (!navigator.mediaDevices) throw new DOMException("", "insecure");
  return navigator.mediaDevices.getUserMedia({ audio: sound(chosen.microphone), video: facing && picture(facing, chosen.camera) });
}

export function openMicrophone(id) {
  return navigator.mediaDevices.getUserMedia({ audio: sound(id) });
}

export function openCamera(facing, id) {
  return navigator.mediaDevices.getUserMedia({ video: picture(facing, id) });
}

/** What the user chooses of their screen. */
export function openScreen() {
  return navigator.mediaDevices.getDisplayMedia({ video: { width: { max: 2560 }, frameRate: { max: 5 } } });
}

export function canShareScreen() {
  return Boolean(navigator.mediaDevices?.getDisplayMedia);
}

export async function countCameras() {
  return (await navigator.mediaDevices.enumerateDevices()).filter(({ kind }) => kind === "videoinput").length;
}

/** Asks for the screen to stay on: a lock to release, or null where the browser has none to give. */
export async function keepAwake() {
  return (await navigator.wakeLock?.request("screen").catch(() => null)) ?? null;
}

/** One that is not there any more gives way to another. */
function sound(id) {
  return id ? { ...SOUND, deviceId: { ideal: id } } : SOUND;
}

function picture(facing, id) {
  const size = { width: { ideal: 1280 }, height: { ideal: 720 } };
  return id ? { deviceId: { ideal: id }, ...size } : { facingMode: facing, ...size };
}
