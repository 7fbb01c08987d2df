"""What words mean: one table of patterns a class (rules K1, K4, U6).

Patterns are searched in lower-case text in which `_` is a space, `` ` `` and `*` are gone and URLs are a mark. One
line is one alternative; each is linear: bounded gaps, no nested repetition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from handrail.messages import FailureClass
from handrail.recovery.reading.words import Words

CANCELLED: Final = Words(
    r"""
    (?:[\w.\[ ]{0,40}(?:error|exception)\]?:?\s){0,3}(?:(?:the|this|your|a)\s)?(?:user\s|api\s)?
    + (?:request|operation|run|call|turn|task|generation|context|signal)?\s?(?:(?:was|has been|is|got)\s)?
    + (?:aborted|cancell?ed)(?:\s(?:by|without|with)\s(?:the\s)?(?:user|caller|client|reason).{0,40})?[.!]?
    .{0,60}\b(?:aborted|cancell?ed|interrupted|stopped) by (?:the )?user\b.{0,60}
    .{0,40}\buser (?:has )?(?:aborted|cancell?ed|interrupted)\b.{0,60}
    (?:[\w.]{0,60}[.:]\s?)?
    + (?:cancellederror|aborterror|apiuseraborterror|keyboardinterrupt|operationcancell?ed\w{0,9})
    + (?:[:(\s].{0,60})?
    """
)
"""A whole text that says: someone on our side ended this."""

OWN_MISTAKE: Final = Words(
    r"""
    (?:tool|function)[ -]call(?:s|ing)?[ ]
    + (?:validation failed|could not be parsed|arguments? (?:could not|are not|is not))
    (?:tool|function)[ -]call(?:s|ing)? (?:arguments? )?(?:as json|parsing|parse error)
    (?:pars(?:e|ing|ed)|decod(?:e|ing)) (?:the |a |an |model'?s? )?(?:generated |output )?(?:tool|function)[ -]?call
    failed to call a (?:tool|function)
    invalid (?:sequence|content) [^.]{0,20}tool ?use|model produced invalid content
    malformed (?:function|tool)[ -]call|unexpected tool call|invalid tool call (?:generated|produced|from the model)
    model (?:has )?(?:produced|generated|emitted|returned|output) (?:an? )?(?:invalid|malformed|unpars)\w{0,30}
    model (?:produced|generated) output that could not
    failed to generate json|failed generation|did not call a tool|but model called a tool|attempted to call tool
    model returned the following errors
    """
)
"""The model's own mistake, reported by a provider as if the request were wrong: asking again helps (rule K4)."""

BROKEN_REPLY: Final = Words(
    r"""
    invalid json (?:response|received|in (?:the )?(?:response|stream))|jsondecodeerror|json parse error
    unexpected token .{1,40}json|expecting value: line \d{1,12}
    (?:fail(?:ed|ure) to|error|could not|cannot) pars(?:e|ing) (?:the )?
    + (?:stream|sse|server|chunk|response|event|message)
    """
)
"""A client that could not read what came back. Where the status says 4xx the same words are about our request."""

THROTTLE: Final = Words(
    r"""
    rate[ -]?limit|too many (?:requests|connections|concurrent)|throttl|slow down|concurren(?:t|cy)
    requests? too (?:quickly|fast|frequent)|request (?:frequency|rate)|too many tokens, please wait
    resource (?:has been )?exhausted|per[ -]?(?:min(?:ute)?|sec(?:ond)?)\b|\b(?:qp[sm]|[rt]p[ms])\b
    请求过多|速率限制|过于频繁|频率|并发
    """
)
"""Asked too fast. These words alone do not tell a throttle from a limit that holds for hours (rule K4)."""

SHORT_PERIOD: Final = Words(
    r"""
    per[ -]?(?:min(?:ute)?|sec(?:ond)?)(?![a-z])|[a-z]{0,60}(?:per|by)minute|\b[rt]p[ms]\b|/ ?min(?:ute)?\b|每分钟|每秒
    """
)
LONG_PERIOD: Final = Words(
    r"""
    per[ -]?(?:day|hour|week|month)(?![a-z])|[a-z]{0,60}(?:per|by)day|(?:tpd|rpd)\b
    (?:daily|weekly|monthly|hourly)\b
    \d{1,12} ?(?:\w{1,30} ){0,2}/ ?(?:day|month|week|hour)\b|每[日天周月]|per \d{5,6}s\b
    """
)

_OVERFLOW = Words(
    r"""
    prompt (?:is )?too (?:long|large)
    (?:input|prompt|context|conversation|session|chat history) (?:is |was |length )?too (?:long|large)\b
    (?:input|prompt|context|messages?) (?:length |tokens? )?exceeds?\b[^.]{0,40}
    + (?:model|context|window|limit|max|tokens)
    exceed(?:s|ed|ing)? (?:(?:the|this|its|your|model'?s?|available|maximum|max|configured) ){0,5}
    + (?:context|input token)
    exceed(?:s|ed|ing)? (?:(?:the|its|your|model'?s?|maximum) ){0,4}input length
    context[ -](?:length|window|size|limit)s? ?(?:has been |was |is )?(?:exceed|overflow|reached|full)
    (?:longer|greater|larger|more) than (?:the |this )?(?:model'?s? )?(?:maximum )?context
    max(?:imum)? (?:context|prompt|sequence) (?:length|window|size|limit|tokens)\b|model'?s? max(?:imum)? context
    maximum (?:allowed )?input (?:length|tokens)|max model len|maximum model length|slot context
    tokens in request more than max
    (?:total|prompt|input|message|request) ?(?:tokens?|length)[^.]{0,40} exceeds?[^.]{0,20}
    + (?:max(?:imum)?|limit|allowed)\b(?![^.]{0,30}\b(?:output|completion))
    exceeds? (?:the )?max(?:imum)? (?:allowed )?(?:message|prompt|input|request) (?:tokens?|length)
    reduce (?:the )?length of (?:the |your )?(?:messages|prompt|input|conversation)
    input token count|inputs? tokens? (?:exceed|\+)|input length and max tokens exceed|range of input length
    prompt (?:token count of|has|contains) [\d,]{1,15} (?:tokens?,? )?(?:exceeds|but|and)
    (?:finish|stop)[ -]?reason\W{1,4}model (?:context|length)
    exceeds? the maximum number of tokens|exceeds? the limit of [\d,]{1,15}(?: tokens)?
    exceed(?:s|ed)? (?:the )?model(?:'s)? (?:input )?token limit
    (?:configured|available|model'?s?) context size|context length (?:of|is) only|context the overflows
    context size has been exceeded|mid-generation context overflow|kv cache is full|exceeds? the context
    inputs must have less than \d{1,12} tokens|number of tokens in the prompt
    too many (?:input|prompt) tokens|too many tokens(?!, please wait| per | processed)
    (?<!output )(?<!completion )(?<!daily )(?<!weekly )(?<!monthly )(?<!hourly )token limit exceeded
    context (?:limit|overflow|window) (?:exceeded|reached|error|full)|context limit|context overflow
    (?:request|payload|content|body) (?:entity |body |payload )?(?:is |was )?too large(?! for .{0,120}\bper )
    request exceeds the maximum (?:allowed )?(?:size|number of bytes)|/compact\b
    上下文.{0,12}(?:超|过长|限制)|(?:prompt|输入|提示词|请求).{0,12}(?:超长|过长)
    超(?:过|出).{0,16}(?:上下文|最大(?:输入)?长度|token)
    """
)

_BILLING = Words(
    r"""
    (?:out of|no|not enough|insufficient|zero|negative|low)[ ]
    + (?:account |remaining |available |api |prepaid |free |trial |promotional ){0,2}
    + (?:credits?|balance|funds)\b
    (?:\bnot|n't) have (?:any |enough |sufficient |available )?(?:api |remaining |available )?
    + (?:credits?|balance|funds)\b
    (?:used|used up|spent|exhausted|exceeded)[ ]
    + (?:all |of |your |the |available |free |monthly |included ){0,4}credits?\b
    (?:credits?|balance|funds)(?: balance)? (?:(?:is|are|has been|have been|was|were) )?(?:too low|exhausted|depleted)
    (?:credits?|balance|funds)(?: balance)? (?:(?:is|are|was|were) )?
    + (?:insufficient|not enough|empty|used up|required|negative)
    credit balance|subscription required|\b0 credits|credit limit (?:exceeded|reached)|can only afford
    add (?:more )?credits to continue
    requires? (?:more |at least |available |a |an )?(?:paid |valid |active )?
    + (?:credits?\b|payment|credit card|subscription)
    usage credits are required|extra usage is required|draw from your extra usage|out of extra usage\W{0,3}add
    payment (?:is )?(?:required|failed|declined|overdue|method|instrument)|past due|in arrears|overdue|unpaid
    past invoices
    spend(?:ing)? (?:cap|limit)|hard limit|key limit exceeded|(?:over|out of|exceeded (?:your|the|its)) budget
    (?<!thinking )budget (?:has been |was |is )?(?:exceeded|exhausted|used up)|max budget
    billing (?:is )?(?:not (?:active|enabled)|exhausted|hard|disabled|quota|issue|problem)|check your billing
    (?:enable|requires?) billing|billing to be enabled|plan and billing details|billing account (?:is|not|has)
    trial (?:period )?(?:has |is )?(?:expired|ended|over)
    insufficient[ -]quota|please (?:recharge|top[ -]up)|top[ -]up your|recharge (?:and|your)
    (?:subscription|plan|package) (?:has |is |was )?(?:expired|lapsed|inactive|cancell?ed|ended|past due)
    (?:inactive|no active|expired) (?:subscription|plan)|upgrade to a paid|free tier of the model has been exhausted
    not included in your (?:plan|subscription)|with your chatgpt plan, upgrade
    plan does not include|not (?:available|supported) on (?:the |your )?free (?:tier|plan)|balance depleted
    limit[^.]{0,20}\$ ?\d|(?:用户|令牌|账户)额度|额度不足|剩余额度
    余额不足|欠费|请充值|充值后|账户余额|套餐(?:已)?(?:过期|到期)|资源包
    """
)

_AUTH = Words(
    r"""
    (?:invalid|incorrect|wrong|bad|missing|expired|revoked|unknown|malformed|disabled|no) (?:x-|your |\w{1,20} )?
    + (?:api[ -]?key|access token|bearer|credentials)
    (?:invalid|incorrect|wrong|bad|missing|expired|revoked|no) (?:auth(?:entication|orization)? )
    + (?:token|header|credentials?)
    (?:invalid|incorrect|wrong|expired) (?:subscription key|token\b(?! (?:count|limit|type|at|in|<)))
    api[ -]?key (?:(?:is|was|has been|you provided|provided|not|that) ){0,3}
    + (?:invalid|incorrect|expired|missing|revoked)
    api[ -]?key (?:(?:is|was|has been|not|header) ){0,3}
    + (?:valid|found|disabled|required|deleted|blocked|leaked|reported)
    (?:did not|didn'?t|have not|must|need to) provide (?:an? |your )?api[ -]?key|no auth\b
    unauthori[sz]ed|unauthenticated|not (?:logged|signed) in|(?:log|sign|signing|logging)[ -]?in again|run /login
    authenticat(?:ion|e) (?:(?:is|was|has|token|header|credentials) ){0,2}
    + (?:fail|error|required|invalid|expired)\w{0,30}
    re-?authenticat|failed to authenticate|authentication fails|could not (?:be )?authenticate
    resolve authentication
    auth credentials|(?:locate|load|find|no|missing) (?:\w{1,20} )?credentials
    credentials (?:were |was |are )?not found
    (?:token|session|credentials?|security token included in the request|login) (?:(?:has|have|is|was|been) ){0,2}
    + (?:expired|revoked|invalidated|invalid\b)
    permission[ -]?denied|access (?:was )?denied|access to (?:this|the) model (?:is )?denied|no permission
    (?:\bnot|n't) have (?:access|permission|authorization|the required)|not authori[sz]ed
    (?:lacks?|insufficient|missing|without) (?:the )?(?:required )?(?:permission|scope|privilege)s?
    (?:account|organi[sz]ation|project|workspace|team|key) (?:has been|is|was)[ ]
    + (?:disabled|deactivated|suspended|banned|restricted|locked|terminated)
    \bjwt\b|signature (?:has expired|we calculated)|requires authentication
    must be verified to|country, region, or territory
    not (?:available|supported) in your (?:country|region|location)
    user location is not supported|\bforbidden\b|you have been blocked|proxy authentication required
    身份验证|令牌(?:已过期|不正确|无效)|无效的?(?:api|密钥|令牌|token)|未授权|无权(?:限)?|鉴权|认证失败
    """
)

_FILTER = Words(
    r"""
    content[ -]?(?:filter|policy|management policy|moderation|violation)|content exists risk|responsible ?ai
    (?<!fair )(?:usage|safety|acceptable use|cyber(?:security)?) polic(?:y|ies)|policy violation
    violat(?:e|es|ed|ing|ion)[^.]{0,60}(?:polic|terms|guideline)
    (?:was|were|been|is|got) (?:flagged|moderated|filtered)|flagged (?:as|for|by)|requires moderation
    moderation (?:failed|blocked|error)|considered high risk
    safety (?:system|filter|reason|setting|check|guideline|classifier)s?|block ?reason
    (?:content|response|output|prompt|input) (?:was |is |has been )blocked|prohibited (?:content|use)
    blocked (?:by|due to|because of|for) [^.]{0,30}(?:safety|content|policy|guardrail|moderat|prohibited|recitation)
    (?:model|assistant|provider|claude) (?:has )?(?:refused|declined)|refused to (?:complete|answer|respond)
    model refusal
    (?:finish|stop)[ -]?reason\W{1,4}(?:content|safety|refusal|prohibited|recitation|sensitive|blocklist|spii)
    guardrail(?! restrictions)|(?:inappropriate|unsafe|sensitive|harmful) content|data inspection|recitation
    敏感|违规内容|不安全|内容安全|违反.{0,10}(?:政策|规定)
    """
)

_INVALID = Words(
    r"""
    invalid (?:request|argument|param|parameter|value|type|schema|model|json|tool|function|input|message|role)
    invalid (?:image|url|format|body|field|payload|max tokens|api parameter|'|\")|bad request
    is not (?:a )?valid\b|not valid json|malformed (?:input|request|json|body)|parameter is illegal
    (?:unsupported|unknown|unrecognized|unexpected|unpermitted) (?:parameter|field|argument|value|model|property)
    (?:unsupported|unknown|unrecognized|unexpected)[ ]
    + (?:keyword|key|option|request|role|media|content|message|name|endpoint)
    (?:\b(?:is|are|was|isn't|not)|n't) (?:currently |yet )?(?:not )?supported\b|(?:does not|doesn't) support
    no longer (?:supported|available)|deprecated|decommissioned|has been (?:retired|removed|shut down)
    (?:missing|requires?) (?:a )?(?:required )?(?:parameter|field|property|argument)|field required|required propert
    extra inputs are not permitted|additional ?properties|validation error|failed to deserialize|input should be
    cannot be modified|could not parse (?:the )?json body
    no such (?:model|deployment)
    (?:model|deployment|resource|endpoint|page|path|route|item|response|file|project|engine)
    + (?: id)?(?: ['\"(]?[\w./:@-]{1,80}['\")]?)? (?:was |is |could )?not (?:be )?found
    (?:model|deployment|resource|endpoint|item|file) .{0,80}(?:does not|doesn't) exist|no models? (?:are )?loaded
    no endpoints (?:found|available)|no allowed providers|(?:could not|can't|cannot) find (?:the )?model
    tool use ids|tool result blocks?|tool call ids?\b|tool calls? must|no tool (?:output|call) found
    without its required
    must[ ]
    + (?:be followed by|be a response|alternate|start with|end with|not be empty|be non-?empty|contain|have non-?empty)
    non-?empty content|text content blocks|expected last role|roles must|function response parts
    max(?:imum)?[ -]?(?:output |completion |new )?tokens?:? ?(?:\d{1,12} ?>|is too large|must be|should be|cannot)
    maximum allowed number of output tokens|maximum tokens you requested
    supports at most \d{1,12} (?:completion|output) tokens
    (?:message|body|payload|image|file|document|attachment|pdf) (?:size|dimensions?)[^.]{0,40}exceeds? (?:the )?
    + (?:limit|max)
    exceeds limit \d{1,12}|request too large for|must be reduced in order to run|fair usage policy|more system memory
    image (?:size |dimensions )?exceeds?|dimensions exceed|could not process (?:the )?(?:image|pdf)
    attachment is too large
    the request could not be made|x509|verify (?:the )?(?:server )?certificate|certificate verif
    certificate (?:has )?expired
    self[ -]signed certificate
    unable to (?:verify|get) .{0,30}certificate
    hostname mismatch|wrong version number|unknown url|unsupported protocol|missing an 'http
    参数(?:错误|无效|有误|不合法)|模型不存在|不支持|请求格式
    """
)

_TRUNCATED = Words(
    r"""
    (?:output|response|completion|reply|generation)[^.]{0,60}(?:truncated|cut (?:off|short))
    (?:hit|reached|exceed(?:ed|s)?)[^.]{0,40}(?:output token|max (?:output |completion |new )?tokens|completion token)
    (?:hit|reached|exceed(?:ed|s)?)[^.]{0,40}(?:maximum (?:output|completion)|output limit)
    max (?:output |completion |new )?tokens[^.]{0,40}(?:hit|reached|exceeded|truncated|cut (?:off|short))
    (?:output|completion) tokens?(?: limit| maximum| cap)?[^.]{0,40}
    + (?:hit|reached|exceeded|truncated|cut (?:off|short))
    (?:output limit|maximum output)[^.]{0,40}(?:hit|reached|exceeded)|output token maximum
    stopped\W{1,3}max tokens
    (?:finish|stop|incomplete)[ -]?reason\W{1,4}(?:length|max ?(?:output )?tokens)\b
    incomplete ?(?:details)?\W{1,3}(?:reason\W{1,4})?max output tokens|(?:output|response) (?:was |is )?too long
    """
)

_USAGE = Words(
    r"""
    usage[ -](?:limit|cap)|global rate limit|out of extra usage|restricts the number of copilot|copilot token usage
    (?:session|weekly|daily|monthly|hourly|opus|sonnet|premium|plan(?:'s)?)[ -]
    + (?:usage |rate |token |request |message |model ){0,2}(?:limit|quota|cap|allowance)
    (?:\d{1,12}|five|seven)[ -]?(?:hour|day)[ -](?:usage |rate |token |request ){0,2}(?:limit|quota|cap|allowance)
    (?:hit|reached) your (?:(?!rate |concurren)[\w.-]{1,30} ){0,3}limit|limits? (?:will )?resets?
    limit reached[ ∙·•|-]{1,5}resets?
    (?:tokens?|requests?|messages?|calls?|queries|units|neurons|limit)[ -](?:\w{1,30} )?per[ -]?
    + (?:day|hour|week|month)
    per[ -](?:day|week|month|hour)\b|\d{1,12} ?(?:\w{1,30} ){0,2}/ ?(?:day|month|week|hour)\b
    [a-z]{0,60}(?:per|by)day|(?:tpd|rpd)\b
    quota (?:has been |is |was |will be |will )?(?:exceeded|exhausted|reset|refresh|used up|reached|limit)
    exhausted (?:your |the |all )?(?:\w{1,30} ){0,2}(?:capacity|quota|limit)
    exceeded (?:your |the |its )?(?:\w{1,30} ){0,3}quota
    (?:quota|allowance|allocation)[^.]{0,20}(?:exceeded|exhausted|used up)|premium request
    exceed(?:s|ed)? the service quota
    (?:used|sent) all (?:of )?(?:your|the) [^.]{0,30}(?:requests|messages|tokens|quota)
    for today\b|(?:used|spent)(?: up)? today\b|today'?s (?:limit|quota|allowance)
    out of (?:free |your )?(?:messages|requests|usage)
    (?:daily|weekly|monthly|request)s? limits? (?:has been )?exhausted
    limit exhausted|no (?:remaining|more) (?:requests|messages|usage)
    使用上限|用量上限|限额|额度已|每[日天周月]|(?:今|当)[日天]|配额
    """
)

_EMPTY = Words(
    r"""
    empty (?:response|reply|completion|message|output|assistant|stream|result|candidates?|choices)
    + (?! from (?:server|peer))
    (?:response|reply|completion|output|message) (?:was|is|came back|body is|text is) (?:empty|blank)
    no (?:content|output|text|choices|candidates|completion|assistant (?:message|response))(?: \w{1,30}){0,2}[ ]
    + (?:in|from|received|returned|generated|produced|found)\b
    no (?:output|content|response text|completion) (?:was |were )?(?:generated|returned|produced|received)
    (?:returned|produced|generated|contained|contains?|returns?|with) (?:an? )?(?:no|empty|zero|blank)[ ]
    + (?:usable |visible |assistant )?
    + (?:content|output|text|response|message|choices|candidates|parts|completion)
    without (?:producing |returning |generating |emitting )?any (?:usable |visible |assistant )?
    + (?:content|output|text|choices|candidates)
    (?:did not|didn't) (?:return|produce|generate|contain|include) (?:any|a) (?:\w{1,30} )?
    + (?:content|output|text|message|choices|candidates)
    blank (?:response|reply|output)|(?:completed|ended|finished) without (?:content|output|text)|zero output tokens
    (?:has|had|have|with) no (?:content|output|text|choices|candidates)\b|\bno (?:choices|candidates)\b
    (?:choices|candidates|content)(?: array| list| field)? (?:is|was|are) empty
    返回(?:了)?(?:内容)?(?:为)?空|空响应|空回复
    """
)

_TRANSIENT = Words(
    r"""
    over-?load|at capacity|capacity (?:exceeded|constraint|limit|exhausted)|no capacity|too busy|\bbusy\b
    server load|peak load
    (?:high|heavy|increased) (?:demand|traffic|load|concurrency|volume)|temporar(?:y|ily)|unavailable
    not ready|loading model|model is (?:currently )?loading|model unloaded|warming up|maintenance|model has crashed
    bad gateway|gateway time|exceeded retry limit|retrying upstream
    all (?:providers|upstreams|targets) failed
    no healthy upstream|no available (?:model )?provider
    (?:finish|stop)[ -]?reason\W{1,4}(?:network error|error|malformed|unexpected tool|insufficient system|abort)
    请稍后|稍后(?:再|重)试|繁忙|负载|访问量过大|网络错误|服务(?:不可用|异常)|内部错误
    """
)

WIRE: Final = Words(
    r"""
    [a-z]{0,20}time[ds]?[ -]?out|timing out|\bi/o error|deadline (?:exceeded|expired)|took too long
    no response (?:received|from|within)|stalled
    idle for|超时
    (?:did not|didn't) (?:respond|get a response)|without response|terminated|socket hang ?up|premature|broken pipe
    fetch failed|failed to fetch|load failed|incomplete (?:read|chunk|stream|response|message)|incompleteread
    unexpected (?:eof|end of)|\beof\b|goaway|rst ?stream|http/?2|transfer closed|reset by peer|reset before headers
    no events? (?:from|for|within)|(?:was |went )silent|program ended while|ended without|ended before
    bad record mac|empty reply from server|not completed|not enough data
    other side closed|err network|appears to be offline
    (?:networks?|connections?|connect(?:ing)?|(?:web)?sockets?|stream(?:ing)?|transport|tunnel|peer|host|body
    + |remote end)\b[^.]{0,60}\b(?:error|lost|clos(?:ed?|ing)|reset|refused|fail|abort|broken)
    (?:networks?|connections?|connect(?:ing)?|(?:web)?sockets?|stream(?:ing)?|transport|tunnel|peer|host|dns)\b
    + [^.]{0,60}\b(?:disconnect|interrupt|unreachable|drop|ended|ends|timed|without|changed|down\b|problem)
    (?:tls|ssl|handshake|proxy|dns|wire)\b[^.]{0,60}\b(?:error|fail|clos(?:ed?|ing)|reset|abort|eof)
    (?:error|fail(?:ed|ure)?|unable|could ?n[o']t|cannot)[^.]{0,30}
    + (?:connect|network|resolve host|send(?:ing)? request|reach)
    (?:error|fail(?:ed|ure)?|unable|could ?n[o']t|cannot)[^.]{0,30}
    + (?:read(?:ing)? (?:the )?(?:body|response|stream)|decoding response body)
    all connection attempts failed|disconnected|name resolution|name or service not known|nodename nor servname
    no such host
    getaddrinfo|no route to host|no address associated|(?:host|server|address|name|domain) not found
    typo in the url or port
    """
)
"""Faults of the way there and back. Where a server answered with a plain 4xx they are about our request."""

COURTESY: Final = Words(
    r"""
    try (?:again|your request again)|please retry|(?:can|may|should) retry|retry (?:your|the) request|retry later
    please wait|something went wrong|unexpected error|had an error
    (?:server|internal|service|backend|upstream|gateway|inference)[ -](?:\w{1,30} )?(?:error|failure|exception)
    error (?:occurred )?(?:while|when|during) (?:processing|streaming|generating)
    unable to (?:handle|process) (?:the|your) request
    """
)
"""Said of a passing fault, and out of politeness of any other: a status that refuses (401, 402, 403) says more."""

CAP_REACHED: Final = Words(
    r"""
    (?:was|were|been|got|is) (?:truncated|cut (?:off|short))|truncated|(?:hit|reached|stopped at|ran into)\b
    """
)
"""The output cap was hit, in contrast to a cap that was asked for."""

VAGUE: Final[Mapping[FailureClass, Words]] = {
    "invalid_request": Words(r"(?<!host )(?<!server )(?<!address )(?<!name )(?<!domain )not found"),
    "transient": Words(
        r"""
        (?:provider|upstream|server|api|model) returned an? ?(?:unknown |invalid )?(?:error|response)
        (?:provider|upstream) returned error|(?:upstream|provider|backend|gateway) request failed
        an? (?:unknown |internal )?error (?:has )?occurred
        (?:api|provider|stream|streaming) error\b|finish[ -]?reason\W{1,4}error
        """
    ),
}
"""Words that say little: they decide only where there is no status either."""

WORDS: Final[Mapping[FailureClass, Words]] = {
    "context_overflow": _OVERFLOW,
    "billing": _BILLING,
    "auth": _AUTH,
    "content_filter": _FILTER,
    "invalid_request": _INVALID,
    "output_truncated": _TRUNCATED,
    "usage_limit": _USAGE,
    "empty": _EMPTY,
    "transient": _TRANSIENT,
}
"""Searched in the order of PRECEDENCE."""
