import { kept } from "./kept.js";

// Every word of the page, in English and in Chinese. What stands in braces is filled in.
const LANGUAGES = { en: 0, zh: 1 };
const LOCALES = { en: "en", zh: "zh-CN" };
const KEPT = "language";
const ATTRIBUTES = { title: "title", placeholder: "placeholder", alt: "alt", label: "aria-label" };

const WORDS = {
  "title": ["Parley", "Parley"],
  "title.recordings": ["Parley: recordings", "Parley：录音"],
  "recordings": ["Recordings", "录音"],
  "language": ["Language", "语言"],
  "back": ["Back to talking", "返回对话"],
  "modes": ["How to talk", "对话方式"],
  "mode.chat": ["Chat", "文字"],
  "mode.audio": ["Audio", "语音"],
  "mode.video": ["Video", "视频"],
  "mode.locked": ["Stop this conversation first, then choose another mode.", "请先结束当前对话，再切换方式。"],
  "theme": ["Dark or light", "深色 / 浅色"],
  "settings": ["Settings", "设置"],
  "settings.key": ["Settings (S)", "设置（S）"],
  "close": ["Close this message", "关闭提示"],

  "stage": ["The conversation now", "当前对话"],
  "preview": ["What your camera shows", "摄像头画面"],
  "recorded": ["The server records conversations.", "服务器会录制对话。"],
  "recorded.now": ["● Recording", "● 正在录制"],
  "recorded.listen": ["Listen to them", "收听录音"],
  "mute": ["Mute the microphone", "静音"],
  "mute.on": ["Mute the microphone (M)", "静音（M）"],
  "mute.off": ["Unmute the microphone (M)", "取消静音（M）"],
  "interrupt": ["Interrupt", "打断"],
  "interrupt.key": ["Interrupt (Esc)", "打断（Esc）"],
  "lens": ["Camera off", "关闭摄像头"],
  "lens.off": ["Turn the camera off", "关闭摄像头"],
  "lens.on": ["Turn the camera on", "打开摄像头"],
  "screen": ["Share the screen", "共享屏幕"],
  "screen.on": ["Share the screen instead of the camera", "共享屏幕以代替摄像头"],
  "screen.off": ["Back to the camera", "换回摄像头"],
  "pause": ["Pause", "暂停"],
  "pause.on": ["Pause (P)", "暂停（P）"],
  "pause.off": ["Go on (P)", "继续（P）"],
  "hold": ["Hold to talk", "按住说话"],
  "camera.other": ["Other camera", "切换摄像头"],
  "camera.key": ["Other camera (F)", "切换摄像头（F）"],
  "start": ["Start talking", "开始对话"],
  "start.leave": ["Leave the queue", "退出排队"],
  "start.stop": ["Stop", "结束"],

  "state.idle": ["Ready when you are", "随时可以开始"],
  "state.ended": ["The conversation has ended", "对话已结束"],
  "state.connecting": ["Connecting…", "正在连接…"],
  "state.queued": ["Waiting in the queue", "排队中"],
  "state.starting": ["Waking the model…", "正在唤醒模型…"],
  "state.listening": ["Listening", "正在聆听"],
  "state.muted": ["Muted", "已静音"],
  "state.hold": ["Hold the button or the space bar to talk", "按住按钮或空格键说话"],
  "state.paused": ["Paused: nothing is sent", "已暂停：不会发送任何内容"],
  "state.thinking": ["Thinking…", "正在思考…"],
  "state.speaking": ["Speaking", "正在说话"],
  "state.reconnecting": ["Reconnecting…", "正在重新连接…"],
  "state.closing": ["Saying goodbye…", "正在结束…"],
  "queue.next": ["You are next: {wait}", "下一位就是您：{wait}"],
  "queue.place": ["Number {position} of {length}: {wait}", "第 {position} 位，共 {length} 人排队：{wait}"],
  "queue.moment": ["any moment", "马上就好"],
  "queue.about": ["about {time}", "约 {time}"],

  "server.asking": ["asking the server…", "正在查询服务器…"],
  "server.ready": ["ready", "就绪"],
  "server.not_ready": ["not ready: {why}", "未就绪：{why}"],
  "server.unreachable": ["not reachable", "无法连接"],
  "server.connected": ["connected", "已连接"],
  "server.lost": ["connection lost", "连接已断开"],
  "server.absent": ["The server cannot take a conversation now: {why}.", "服务器暂时无法提供服务：{why}。"],
  "server.refused": [
    "The server refused the connection: it may allow only so many conversations at a time. Try again in a minute.",
    "服务器拒绝了连接：同时进行的对话数可能已达上限，请稍后再试。",
  ],
  "missing.server": ["Nobody answers at {host}: start the server, or check your network, then start again.", "{host} 没有响应：请启动服务器或检查网络，然后重新开始。"],
  "missing.key": ["This server asks for an API key: enter yours in the settings, then start again.", "此服务器需要 API 密钥：请在设置中填写，然后重新开始。"],
  "missing.right_key": ["The server does not know this API key: correct it in the settings, then start again.", "服务器不认识这个 API 密钥：请在设置中改正，然后重新开始。"],
  "missing.name": [
    "This server does not go by the name {name}: open it by its address, or have its operator add the name to server.names.",
    "此服务器不使用 {name} 这个名称：请改用 IP 地址打开，或请管理员把该名称加入 server.names。",
  ],
  "reason.the_server_is_shutting_down": ["the server is shutting down", "服务器正在关闭"],
  "reason.the_queue_manager_has_ended": ["the queue manager has ended", "排队管理器已停止"],
  "reason.the_model_is_still_being_loaded": ["the model is still being loaded", "模型仍在加载"],
  "reason.every_worker_is_being_drained": ["every worker is being drained", "所有工作进程都在停止接受新会话"],
  "reason.no_worker_is_up": ["no worker is up", "没有可用的工作进程"],

  "transcript": ["Transcript", "对话记录"],
  "transcript.clear": ["Clear", "清空"],
  "transcript.save": ["Save", "保存"],
  "transcript.save.why": ["Download this conversation as text", "下载本次对话的文字"],
  "transcript.sound": ["Sound", "声音"],
  "transcript.sound.why": ["Download this conversation as a sound file: you on the left, the model on the right", "下载本次对话的声音：左声道是您，右声道是模型"],
  "earlier": ["Earlier conversations", "以前的对话"],
  "earlier.when": ["{time}, {mode}", "{time}，{mode}"],
  "earlier.where": ["Kept in this browser only, the last ten.", "仅保存在此浏览器中，最多十次。"],
  "earlier.forget": ["Forget them all", "全部删除"],
  "again": ["Your conversation is still there.", "您的对话仍在进行。"],
  "again.go_on": ["Go on", "继续对话"],
  "transcript.empty": ["The conversation will appear here.", "对话内容会显示在这里。"],
  "transcript.head": ["Parley, {time}", "Parley，{time}"],
  "you": ["You", "您"],
  "model": ["Parley", "Parley"],
  "line": ["{who}: {text}", "{who}：{text}"],
  "spoke": ["you spoke, {time}", "您说了 {time}的话"],
  "event.begins": ["the conversation begins", "对话开始"],
  "event.goes_on": ["the conversation goes on", "对话继续"],
  "event.ends": ["ended after {length}", "对话已结束，{length}"],
  "event.recorded": ["the server records this conversation", "服务器正在录制这次对话"],
  "event.interrupted": ["interrupted", "已打断"],
  "pictures.sent": ["[pictures: {count}]", "[图片：{count}]"],
  "picture.sent": ["A picture that was sent", "已发送的图片"],

  "answers.with": ["with {model}", "由 {model} 回答"],
  "answers.other": ["{model} answers here.", "由 {model} 回答。"],
  "answers.nano": ["nano is a toy, made to try this page. It knows English only: names, sums, days, capitals, shapes.", "nano 是用来试用本页面的玩具模型，只懂英语，能回答姓名、加减法、星期、首都和图形方面的问题。"],
  "answers.tiny-omni": ["tiny-omni: random weights, so it answers nonsense.", "tiny-omni：权重是随机的，回答没有意义。"],
  "answers.try": ["Try one of these:", "试试这些问题："],

  "composer.state": ["Message", "消息"],
  "composer.write": ["Write a message", "输入消息"],
  "composer.send": ["Send", "发送"],
  "composer.stop": ["Stop", "停止"],
  "composer.stop.key": ["Stop (Esc)", "停止（Esc）"],
  "composer.add": ["Add a picture", "添加图片"],
  "composer.pictures": ["Pictures to send", "待发送的图片"],
  "composer.remove": ["Remove {name}", "移除 {name}"],
  "composer.aloud": ["Answer aloud", "朗读回答"],
  "composer.unread": ["Not a picture that this browser can read: {names}", "浏览器无法识别为图片：{names}"],

  "details": ["Details", "详细数据"],
  "details.latency": ["Latency", "延迟"],
  "details.latency.now": ["median {time}", "中位数 {time}"],
  "details.latency.chart": ["Latency of the newest answers", "最近回答的延迟"],
  "details.context": ["Context in use", "上下文用量"],
  "details.context.now": ["{used} of {all} tokens", "{used} / {all} 个词元"],
  "details.timeline": ["Listening and speaking", "聆听与说话"],
  "details.timeline.now": ["{spoken} of {all} spoken", "{all}中有 {spoken}在说话"],
  "details.timeline.chart": ["Listening and speaking, second by second", "逐秒显示聆听与说话"],
  "details.sent": ["sent", "已发送"],
  "details.answered": ["answered", "已回答"],
  "details.dropped": ["dropped", "已丢弃"],
  "details.heard": ["heard", "已播放"],
  "unit.s": ["sec", "秒"],
  "unit.message": ["message", "条"],
  "unit.messages": ["messages", "条"],

  "keys.start": ["start or stop", "开始 / 结束"],
  "keys.mute": ["mute", "静音"],
  "keys.send": ["send", "发送"],
  "keys.interrupt": ["interrupt", "打断"],
  "keys.pause": ["pause", "暂停"],
  "keys.settings": ["settings", "设置"],
  "programs": ["For programs", "开发者接口"],
  "programs.talk": ["a conversation", "进行对话"],
  "programs.health": ["the state of the server", "服务器状态"],
  "programs.models": ["the model that answers", "当前模型"],
  "programs.voice": ["the default voice", "默认音色"],
  "programs.recording": ["a recording", "录制内容"],
  "programs.replay": ["replay of recordings", "回放录音"],
  "programs.close": ["ends a session", "结束一个会话"],
  "programs.drain": ["whether a worker takes new sessions", "工作进程是否接受新会话"],

  "settings.prompt": ["System prompt", "系统提示词"],
  "settings.prompt.hint": ["who the model is and how it answers", "模型的角色和回答方式"],
  "settings.prompt.example": ["You are a helpful assistant.", "你是一个乐于助人的助手。"],
  "settings.voice": ["Voice", "模型的音色"],
  "settings.voice.hint": ["a recording of 0.25 to 60 seconds; without one, the server's default voice", "0.25 秒到 60 秒的录音；不选则用服务器的默认音色"],
  "settings.voice.choose": ["Choose a recording", "选择录音"],
  "settings.voice.forget": ["Back to the default voice", "恢复默认音色"],
  "settings.voice.ready": ["{time} of voice loaded.", "已读取 {time}的音色录音。"],
  "settings.voice.unread": ["This file holds no sound that the browser can read.", "浏览器无法读取此文件中的声音。"],
  "settings.voice.short": ["This recording is too short: it takes at least 0.25 seconds.", "录音太短，至少需要 0.25 秒。"],
  "devices": ["Devices", "设备"],
  "devices.microphone": ["Microphone", "麦克风"],
  "devices.speaker": ["Loudspeaker", "扬声器"],
  "devices.camera": ["Camera", "摄像头"],
  "devices.usual": ["The browser's usual one", "浏览器默认设备"],
  "devices.number": ["Number {number}", "设备 {number}"],
  "devices.level": ["How loud the microphone hears you", "麦克风音量"],
  "devices.try": ["Try them", "试用设备"],
  "devices.try.stop": ["Stop trying", "停止试用"],
  "devices.volume": ["Volume", "音量"],
  "devices.hold": ["Push to talk", "按键说话"],
  "devices.hold.hint": ["the microphone is open only while you hold a button or the space bar", "只有按住按钮或空格键时麦克风才会打开"],
  "settings.key.name": ["API key", "API 密钥"],
  "settings.key.hint": ["only if the server asks for one; kept until this tab is closed", "仅在服务器要求时填写；关闭标签页后即清除"],
  "settings.hint": ["Changes apply from the next conversation on.", "更改从下一次对话起生效。"],
  "settings.done": ["Done", "完成"],

  "error.not_ready": ["The server was not ready for that yet.", "服务器尚未准备好。"],
  "error.unknown_event": ["This page and the server are of different versions. Reload the page.", "页面与服务器的版本不一致，请刷新页面。"],
  "error.invalid_event": ["That cannot be done at this point of the conversation.", "对话进行到这一步时不能这样做。"],
  "error.missing_field": ["Something was missing in what was sent.", "发送的内容不完整。"],
  "error.invalid_payload": ["The server could not use what was sent.", "服务器无法使用发送的内容。"],
  "error.service_unavailable": ["The model is not available right now. Try again in a moment.", "模型暂不可用，请稍后再试。"],
  "error.queue_full": ["Too many people are waiting. Try again later.", "排队人数过多，请稍后再试。"],
  "error.worker_busy": ["Somebody else is talking with the model. Try again in a moment.", "模型正在与其他人对话，请稍后再试。"],
  "error.worker_connect_failed": ["The machine with the model cannot be reached. Try again in a moment.", "无法连接到运行模型的机器，请稍后再试。"],
  "error.inference_error": ["The model failed on that one. You can go on.", "模型这一次出错了，请继续对话。"],
  "error.resume_refused": ["That conversation is over. Start a new one.", "该对话已经结束，请重新开始。"],
  "error.quota_exceeded": ["This key has used up what it may.", "此密钥的用量已用完。"],
  "error.unknown": ["Something went wrong.", "出错了。"],
  "error.because": ["{words} ({message})", "{words}（{message}）"],
  "error.blind": ["{words} The conversation goes on without pictures.", "{words}对话将在没有画面的情况下继续。"],

  "over.timeout": ["The time for this conversation is over. Start a new one whenever you like.", "本次对话时间已到，您可以随时重新开始。"],
  "over.context_full": ["The model's memory of this conversation is full. Start a new one to go on.", "模型对本次对话的记忆已满，请重新开始对话。"],
  "over.quota_exceeded": ["This key has used up what it may for now.", "此密钥目前的用量已用完。"],
  "over.server_shutdown": ["The server is being shut down.", "服务器正在关闭。"],
  "over.backend_error": ["The model broke off. Start again.", "模型意外中断，请重新开始。"],
  "over.error": ["The model broke off. Start again.", "模型意外中断，请重新开始。"],
  "over.resume_refused": ["The connection was lost, and the conversation with it. Start a new one.", "连接中断，对话未能恢复，请重新开始。"],
  "code.1003": ["The server could not read a message of this page.", "服务器无法解析页面发送的消息。"],
  "code.1006": ["The connection was lost.", "连接已断开。"],
  "code.1007": ["The server could not read a message of this page.", "服务器无法解析页面发送的消息。"],
  "code.1008": ["The server ended the conversation: it was asked for something that it does not allow.", "服务器结束了对话：请求了不被允许的操作。"],
  "code.1009": ["That was too large to send.", "发送的内容过大。"],
  "code.1011": ["The model broke off. Start again.", "模型意外中断，请重新开始。"],
  "code.1013": ["The server is full right now. Try again in a moment.", "服务器目前没有空位，请稍后再试。"],
  "code.other": ["The connection ended ({code}).", "连接已结束（{code}）。"],
  "soon": ["This conversation ends in about {time}: {why}.", "本次对话将在约 {time}后结束：{why}。"],
  "soon.timeout": ["the time limit", "即将达到时长上限"],
  "soon.context_full": ["the model's memory is nearly full", "模型的记忆即将用完"],
  "soon.quota_exceeded": ["this key has used up nearly all that it may", "此密钥的用量即将用完"],
  "soon.server_shutdown": ["the server is being shut down", "服务器正在关闭"],
  "device.NotAllowedError": ["The browser did not get permission. Allow it in the address bar, then start again.", "浏览器没有获得权限。请在地址栏中允许后重新开始。"],
  "device.NotFoundError": ["No microphone or camera was found. Connect one, then start again.", "没有找到麦克风或摄像头。请连接设备后重新开始。"],
  "device.NotReadableError": ["The device is used by another program. Close that program, then start again.", "设备正被其他程序占用。请关闭该程序后重新开始。"],
  "device.OverconstrainedError": ["The device cannot do what is needed. Choose another one in the settings.", "设备不满足要求，请在设置中选择其他设备。"],
  "device.microphone_gone": ["The microphone is gone. Connect one, then start again.", "麦克风已断开。请重新连接后再开始。"],
  "device.camera_gone": ["The camera is gone. The conversation goes on without pictures.", "摄像头已断开，对话将在没有画面的情况下继续。"],
  "device.AbortError": ["The device could not be started. Unplug it or close other programs that use it, then start again.", "设备无法启动。请重新插拔设备或关闭占用它的程序，然后重新开始。"],
  "device.SecurityError": ["This browser does not let the page use a microphone here. Open the page in a window of its own.", "此处浏览器不允许页面使用麦克风，请在单独的窗口中打开本页面。"],
  "device.unknown": ["The microphone or camera could not be opened ({name}). Connect another one, then start again.", "无法打开麦克风或摄像头（{name}）。请更换设备后重新开始。"],
  "device.insecure": [
    "Browsers give the microphone only to pages from https or from localhost: start the server with --tls auto and open it by https, or forward its port with ssh -L.",
    "浏览器只允许 https 或 localhost 页面使用麦克风：请用 --tls auto 启动服务器并以 https 打开，或用 ssh -L 转发端口。",
  ],

  "http.401": ["The recordings of this server need an API key: enter yours in the settings of the page, then come back.", "查看此服务器的录音需要 API 密钥：请在对话页面的设置中填写后再回来。"],
  "http.403": ["Recordings are shown to the server's own machine and to the key that made them: open this page there, or with that key.", "录音只对服务器本机和录制时所用的密钥开放：请在服务器本机或使用该密钥打开本页面。"],
  "http.404": ["This recording is not there any more.", "该录音已不存在。"],
  "http.other": ["The server could not show this ({status}).", "服务器无法提供该内容（{status}）。"],
  "replay": ["Replay", "回放"],
  "replay.silent": ["Nothing was said", "没有人说话"],
  "replay.unread": ["…", "…"],
  "replay.none": ["There are no recordings. A setting of the server turns recording on:", "还没有录音。通过服务器的这个设置开启录制："],
  "replay.picture": ["What the camera showed", "摄像头当时的画面"],
  "replay.waves": ["Sound of both sides: the person above, the model below", "双方的声音：上方是用户，下方是模型"],
  "replay.play": ["Play", "播放"],
  "replay.pause": ["Pause", "暂停"],
  "replay.space": ["Space", "空格键"],
  "replay.position": ["Position", "播放位置"],
  "replay.now": ["{now} of {all}", "{now} / {all}"],
  "replay.lines": ["What was said", "对话内容"],
  "replay.files": ["Save as a file:", "保存为文件："],
  "replay.both": ["Both sides", "双方声音"],
  "replay.both.why": ["One stereo file: the person on the left, the model on the right", "一个立体声文件：左声道是用户，右声道是模型"],
  "replay.input": ["The person's sound", "用户的声音"],
  "replay.output": ["The model's sound", "模型的声音"],
  "replay.events": ["Every message of the conversation, with its time", "对话中的全部消息及时间"],
  "replay.remove": ["Delete this recording", "删除此录音"],
  "replay.sure": ["Delete this recording for good?", "确定永久删除此录音？"],
  "replay.facts": ["{time}, {mode}, {length}, {end}", "{time}，{mode}，{length}，{end}"],
  "replay.title": ["{time}, {mode}, {id}", "{time}，{mode}，{id}"],
  "replay.ends": ["the conversation ends: {end}", "对话结束：{end}"],
  "end.user_stop": ["stopped", "已停止"],
  "end.stopped": ["stopped by the operator", "由管理员结束"],
  "end.client_closed": ["left", "已离开"],
  "end.turn_done": ["answered", "已回答"],
  "end.timeout": ["time was up", "时间已到"],
  "end.context_full": ["the memory was full", "记忆已满"],
  "end.quota_exceeded": ["the key was used up", "密钥用量已用完"],
  "end.server_shutdown": ["the server was shut down", "服务器已关闭"],
  "end.backend_error": ["the model broke off", "模型意外中断"],
  "end.error": ["the model broke off", "模型意外中断"],
  "end.failed": ["failed", "失败"],
  "end.cut": ["cut off", "意外中断"],
  "end.closed": ["ended", "已结束"],
};

const followers = [];

function preferred() {
  const wanted = navigator.languages.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => tag in LANGUAGES);
  return wanted ?? "en";
}

const chosen = kept.get(KEPT);
let language = chosen in LANGUAGES ? chosen : preferred();

/** The browser's own variety of the present language: a British date is not an American one. */
function region() {
  return navigator.languages.find((tag) => tag.slice(0, 2).toLowerCase() === language) ?? LOCALES[language];
}

export function has(key) {
  return key in WORDS;
}

/** The words of that name in the present language, with `values` in the places of their names. */
export function words(key, values = {}) {
  return WORDS[key][LANGUAGES[language]].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** Of the names that begin with `group`, that of `member`; else `otherwise`. */
export function wordsOf(group, member, otherwise = "", values = {}) {
  return has(`${group}.${member}`) ? words(`${group}.${member}`, values) : otherwise;
}

export function inNumbers(value, options) {
  return new Intl.NumberFormat(LOCALES[language], options).format(value);
}

/** A length of time: `unit` is "millisecond", "second" or "minute". */
export function inTime(value, unit, digits = 0) {
  return inNumbers(value, { style: "unit", unit, unitDisplay: "short", minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Minutes and seconds, as clocks show them. */
export function inLength(seconds) {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
}

function halvesTheDay(locale) {
  return new Intl.DateTimeFormat(locale, { hour: "numeric" }).resolvedOptions().hour12;
}

/** The morning is told from the evening by words only where both the page's language and the browser's own do so. */
function hours() {
  return { hourCycle: halvesTheDay(region()) && halvesTheDay(navigator.language) ? "h12" : "h23" };
}

export function atTime(date) {
  return date.toLocaleTimeString(region(), { timeStyle: "medium", ...hours() });
}

export function onDate(date) {
  return date.toLocaleString(region(), { dateStyle: "medium", timeStyle: "short", ...hours() });
}

/** Writes the words of the page's own elements; `run` is called now and whenever the language changes. */
export function followLanguage(button, run) {
  followers.push(run);
  button.addEventListener("click", () => {
    language = language === "en" ? "zh" : "en";
    kept.set(KEPT, language);
    apply(button);
  });
  apply(button);
}

function apply(button) {
  document.documentElement.lang = LOCALES[language];
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = words(element.dataset.word);
  for (const [member, attribute] of Object.entries(ATTRIBUTES))
    for (const element of document.querySelectorAll(`[data-word-${member}]`)) element.setAttribute(attribute, words(element.getAttribute(`data-word-${member}`)));
  button.textContent = language === "en" ? "中文" : "English"; // each in its own words
  button.lang = language === "en" ? "zh-CN" : "en";
  for (const run of followers) run();
}
