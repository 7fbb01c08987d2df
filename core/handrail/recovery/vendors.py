"""What vendors' names and words mean: the tables behind `classify` (rules K1, K2, K4, U6).

Names (codes, types, exception classes) are squashed: lower case, letters and digits only. Words are patterns over
lower-case text in which `_` is a space. A name says more than words; the weak names at the end say so little that
words come first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

FailureClass: TypeAlias = Literal[
    "transient",
    "usage_limit",
    "auth",
    "billing",
    "content_filter",
    "context_overflow",
    "output_truncated",
    "invalid_request",
    "empty",
    "cancelled",
    "unknown",
]

PRECEDENCE: Final[tuple[FailureClass, ...]] = (
    "context_overflow",
    "billing",
    "auth",
    "content_filter",
    "invalid_request",
    "output_truncated",
    "usage_limit",
    "transient",
    "empty",
)
"""Which class wins where one text speaks of several (rule R1): overflow over permanent, permanent over transient."""

_NAMES: dict[FailureClass, str] = {
    "context_overflow": """
        contextlengthexceeded contextwindowexceeded contextwindowexceedederror modelcontextwindowexceeded modellength
        exceedcontextsizeerror requesttoolarge contextlimitexceeded contextoverflow contextlengtherror inputtoolong
        prompttoolong maxcontextlengthexceeded modelmaxprompttokensexceeded tokenslimitreached maxprompttokensexceeded
        inputtokenlimitexceeded
    """,
    "billing": """
        insufficientquota billinghardlimitreached billingnotactive billingerror billingdisabled insufficientbalance
        insufficientcredits insufficientcredit insufficientfunds creditsrequired creditserror outofcredits nocredits
        paymentrequired paymentrequirederror workspaceownercreditsdepleted workspacemembercreditsdepleted
        exceededcurrentquotaerror arrearage accountoverdueerror accountoverdue budgetexceeded usagenotincluded
        spendlimitreached spendlimitexceeded spendinglimitreached balancenotenough allocationquotafreetieronly freetieronly
        invalidpaymentinstrument subscriptionrequired subscriptionexpired
    """,
    "auth": """
        invalidapikey incorrectapikey authenticationerror authenticationfailed authenticationfailederror apikeyinvalid
        apikeyexpired apikeyserviceblocked invalidauthentication invalidauthenticationerror expiredtoken
        expiredtokenexception tokenexpired tokeninvalid unrecognizedclientexception invalidsignatureexception
        incompletesignature incompletesignatureexception missingauthenticationtoken missingauthenticationtokenexception
        invalidclienttokenid accountdeactivated unsupportedcountryregionterritory servicedisabled organizationrestricted
        refreshtokenexpired refreshtokenreused refreshtokeninvalidated tokeninvalidated invalidgrant invalidapikeyerror
        ipnotauthorized mismatchedorganization invalidorganization insufficientpermissions apikeyhttpreferrerblocked
    """,
    "content_filter": """
        contentfilter contentfiltered contentpolicyviolation contentpolicyviolationerror responsibleaipolicyviolation
        moderationblocked safety prohibitedcontent blocklist spii recitation imagesafety imageprohibitedcontent
        datainspectionfailed guardrailintervened sensitive cyberpolicy cyberpolicyviolation refusal invalidprompt
        contentmoderation unsafecontent modelarmor
    """,
    "invalid_request": """
        modelnotfound deploymentnotfound invalidmodel nosuchmodel modelnotsupported unsupportedparameter unsupportedvalue
        unknownparameter missingrequiredparameter invalidtype invalidfunctionparameters integerbelowminvalue
        integerabovemaxvalue decimalabovemaxvalue decimalbelowminvalue invalidjson unsupportedmodel modeldecommissioned
        modeldeprecated operationnotsupported unsupportedapiversion invalidimage invalidimageurl imageparseerror
        invalidencryptedcontent previousresponsenotfound invalidrequestmessageorder extraforbidden arrayabovemaxlength
        emptyarray modelnotallowed unsupportedapiforthemodel unsupportedapiformodel certverifyfailed
        depthzeroselfsignedcert selfsignedcertinchain unabletoverifyleafsignature certhasexpired errtlscertaltnameinvalid
        unabletogetissuercertlocally errinvalidurl
    """,
    "output_truncated": "maxoutputtokens maxtokensreached outputlimitreached maxoutputreached",
    "usage_limit": """
        usagelimitreached usagelimitexceeded workspaceownerusagelimitreached workspacememberusagelimitreached
        freeusagelimiterror gousagelimiterror monthlylimiterror userglobalratelimited userweeklyratelimited quotaexceeded
        accountquotaexceeded dailylimitexceeded weeklylimitexceeded monthlylimitexceeded servicequotaexceededexception
        servicequotaexceeded subscriptionsharingusagelimitexceeded
    """,
    "transient": """
        overloadederror overloaded serverisoverloaded serveroverloaded modeloverloaded engineoverloadederror slowdown
        servererror internalservererror internalserverexception internalerror internalfailure timeouterror timeout
        requesttimeout gatewaytimeout badgateway serviceunavailable serviceunavailableexception serviceunavailableerror
        unavailable unavailableerror deadlineexceeded modeltimeoutexception modelerrorexception modelnotreadyexception
        modelstreamerrorexception internal networkerror toolusefailed jsonvalidatefailed outputparsefailed
        malformedfunctioncall unexpectedtoolcall malformedresponse servicetiercapacityexceeded capacityexceeded nocapacity
        queueexceeded concurrencylimitexceeded toomanyconcurrentrequests insufficientsystemresource upstreamerror
        streamerror streamreaderror connectionerror apiconnectionerror apitimeouterror websocketconnectionlimitreached
        enotfound eaiagain econnreset econnrefused econnaborted etimedout epipe ehostunreach enetunreach enetdown
        ehostdown underrsocket underrconnecttimeout underrheaderstimeout underrbodytimeout errstreamprematureclose
        errhttp2streamerror errhttp2sessionerror errsslwrongversionnumber remoteprotocolerror connecterror connecttimeout
        readtimeout readerror writeerror writetimeout pooltimeout incompleteread remotedisconnected chunkedencodingerror
        serverdisconnectederror clientpayloaderror clientoserror clientconnectorerror connectionreseterror
        connectionrefusederror brokenpipeerror connectionabortederror malformedtoolcall modelcrashed
    """,
}
NAMES: Final[Mapping[str, FailureClass]] = {
    name: class_ for class_, names in reversed(list(_NAMES.items())) for name in names.split()
}
"""Names that say enough alone, in a field or standing in a text."""

WEAK: Final[Mapping[str, FailureClass]] = {
    **dict.fromkeys(
        "ratelimiterror ratelimitexceeded ratelimitreachederror ratelimitreached resourceexhausted throttlingexception "
        "throttled throttling throttlingerror toomanyrequests toomanyrequestsexception apierror aborted tokenquotaexceeded toomanytokenserror "
        "requestquotaexceeded ratelimited throttlingratequota throttlingallocationquota toomanyrequestserror".split(),
        "transient",
    ),
    **dict.fromkeys(
        "permissiondenied permissiondeniederror permissionerror accessdenied accessdeniedexception accessdeniederror "
        "unauthorized unauthenticated forbidden notauthorized accountnotactive nopermission modelaccessdenied".split(),
        "auth",
    ),
    **dict.fromkeys(
        "invalidrequesterror invalidrequest invalidargument invalidparameter invalidparametererror validationexception "
        "validationerror badrequest badrequesterror badrequestexception notfound notfounderror resourcenotfoundexception "
        "resourcenotfound failedprecondition outofrange unprocessableentityerror unprocessableentity invalidvalue "
        "unimplemented methodnotallowed unsupportedoperation".split(),
        "invalid_request",
    ),
}
"""Names that a vendor gives to many things: they decide only where no words do."""

FINISH_KEYS: Final = frozenset("finishreason stopreason nativefinishreason reason".split())
FINISH: Final[Mapping[str, FailureClass]] = {
    "length": "output_truncated",
    "maxtokens": "output_truncated",
    "maxoutputtokens": "output_truncated",
    "contentfilter": "content_filter",
    "refusal": "content_filter",
    "sensitive": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "modelcontextwindowexceeded": "context_overflow",
    "modellength": "context_overflow",
    "error": "transient",
    "networkerror": "transient",
    "insufficientsystemresource": "transient",
    "malformedfunctioncall": "transient",
    "aborted": "transient",
}
"""A stop reason that stands where an error was expected."""

NUMBERED: Final[Mapping[str, Mapping[str, FailureClass]]] = {
    "zai": {
        **dict.fromkeys(("1000", "1001", "1002", "1003", "1004", "1110", "1111", "1112", "1120", "1121", "1220"), "auth"),
        **dict.fromkeys(("1113", "1309", "1311"), "billing"),
        **dict.fromkeys(("1210", "1211", "1212", "1213", "1214", "1215", "1221", "1222", "1313"), "invalid_request"),
        "1261": "context_overflow",
        **dict.fromkeys(("1300", "1301"), "content_filter"),
        **dict.fromkeys(("1302", "1303", "1305", "1312", "1230", "1234", "1120"), "transient"),
        **dict.fromkeys(("1304", "1308", "1310"), "usage_limit"),
    },
    "minimax": {
        **dict.fromkeys(("1000", "1001", "1002", "1013", "1024", "1033"), "transient"),
        **dict.fromkeys(("1004", "2049"), "auth"),
        "1008": "billing",
        **dict.fromkeys(("1026", "1027"), "content_filter"),
        "1039": "context_overflow",
        **dict.fromkeys(("2013", "2014"), "invalid_request"),
        "2056": "usage_limit",
    },
    "mistral": {"3505": "transient", "1300": "transient"},
}  # fmt: skip
"""Numbered codes; a number means nothing without its vendor (rule K4)."""

ALIASES: Final[Mapping[str, str]] = {
    "zhipu": "zai", "zhipuai": "zai", "bigmodel": "zai", "glm": "zai", "zaicodingplan": "zai", "zaiglm": "zai",
    "gemini": "google", "googlevertex": "google", "vertex": "google", "vertexai": "google", "googlegemini": "google",
    "geminicli": "google", "googlegenerativeai": "google", "googlegeminicli": "google", "googleantigravity": "google",
    "alibaba": "dashscope", "qwen": "dashscope", "bailian": "dashscope", "aliyun": "dashscope", "modelstudio": "dashscope",
}  # fmt: skip


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


CANCELLED: Final = re.compile(
    r"(?:\w{0,40}(?:error|exception)\]?:?\s)*"
    r"(?:the\s|this\s|your\s|a\s)?(?:user\s|api\s)?(?:request|operation|run|stream|call|turn|task|generation|response|signal|context)?\s?"
    r"(?:was\s|has been\s|is\s|got\s)?(?:aborted|cancell?ed|interrupted)"
    r"(?: (?:by|without|with) (?:the )?(?:user|caller|client|reason).{0,40})?[.!]?"
    r"|.{0,60}\b(?:aborted|cancell?ed|interrupted|stopped) by (?:the )?user\b.{0,60}"
    r"|.{0,40}\b(?:the )?user (?:has )?(?:aborted|cancell?ed|interrupted)\b.{0,60}"
    r"|(?:\w{0,30}[.:]\s?)?(?:cancellederror|aborterror|apiuseraborterror|keyboardinterrupt|operationcancell?ed(?:error|exception)?)(?:[:(\s].{0,60})?"
)
"""A whole text that says: someone on our side ended this."""

OWN_MISTAKE: Final = _words(
    r"(?:tool|function)[ -]call(?:s|ing)? (?:validation failed|could not be parsed|arguments? (?:could not|as json|are not|is not)|parsing)",
    r"(?:pars(?:e|ing|ed)|decod(?:e|ing)|failed to call) (?:the |a |an |model'?s? )?(?:generated |output |arguments (?:of|for) )?(?:tool|function)(?: call)?",
    r"invalid (?:sequence|content) [^.]{0,20}tool ?use|malformed (?:function|tool)[ -]call|unexpected tool call",
    r"model (?:has )?(?:produced|generated|output|emitted|returned) (?:an? )?(?:invalid|malformed|unparsable|output that could not|unparseable)",
    r"failed to generate json|failed generation|did not call a tool|but model called a tool|model returned the following errors|attempted to call tool",
)
"""The model's own mistake, reported by a provider as if the request were wrong: asking again helps (rule K4)."""

THROTTLE: Final = _words(
    r"rate[ -]?limit|too many (?:requests|connections|concurrent)|throttl|slow down|concurren(?:t|cy)|request frequency",
    r"requests? too (?:quickly|fast|frequent)|too many tokens, please wait|resource (?:has been )?exhausted",
    r"per[ -]?(?:min(?:ute)?|sec(?:ond)?)\b|\b[rt]p[ms]\b|max rpm|请求过多|速率限制|过于频繁|频率|并发",
)
"""Asked too fast. These words alone do not tell a throttle from a limit that holds for hours (rule K4)."""

SHORT_PERIOD: Final = re.compile(
    r"per[ -]?(?:min(?:ute)?|sec(?:ond)?)(?![a-z])|perminute|\b[rt]p[ms]\b|/ ?min(?:ute)?\b|每分钟|每秒"
)
LONG_PERIOD: Final = re.compile(
    r"per[ -]?(?:day|hour|week|month)(?![a-z])|perday|byday|\b(?:tpd|rpd)\b|\bdaily\b|\bweekly\b|\bmonthly\b|\d ?\w* ?/ ?(?:day|month|week|hour)\b|每[日天周月]"
)

WORDS: Final[Mapping[FailureClass, re.Pattern[str]]] = {
    "context_overflow": _words(
        r"prompt (?:is )?too (?:long|large)",
        r"(?:input|prompt|context|conversation|messages?|chat history) (?:is |are |was |length )?(?:too (?:long|large)|exceeds?\b)[^.]{0,40}(?:model|context|window|limit|maximum|tokens)",
        r"(?:input|prompt|context|conversation|session) (?:is |are |was |length )?too long\b",
        r"exceed(?:s|ed|ing)? (?:the |this |its |your |model'?s? |available |maximum |max |configured )*(?:context|input (?:token|length))",
        r"context[ -](?:length|window|size|limit)s?(?: has been| was| is)? (?:exceed|overflow|reached|full)",
        r"(?:longer|greater|larger|more) than (?:the |this )?(?:model'?s? )?(?:maximum )?context",
        r"maximum (?:context|prompt|input|sequence) (?:length|window|size|tokens)\b",
        r"maximum allowed input length|model'?s? maximum context",
        r"max(?:imum)? context (?:length|window|size|limit)",
        r"reduce (?:the )?length of (?:the |your )?(?:messages|prompt|input|conversation)",
        r"input token count|inputs? tokens? (?:exceed|\+)|input length (?:exceeds|and max tokens exceed)|range of input length",
        r"prompt token count of \d+ exceeds|prompt has [\d,]+ tokens?, but",
        r"exceeds the (?:maximum number of tokens|limit of [\d,]+ tokens?)",
        r"exceeded (?:the )?model token limit|exceeds? (?:the )?model(?:'s)? (?:input )?token limit",
        r"configured context size|context length of only|context length is only|available context size|context size (?:has been )?exceeded|mid-generation context overflow|context the overflows",
        r"inputs must have less than \d+ tokens|inputs tokens \+ max new tokens",
        r"too many (?:input |prompt )tokens|too many tokens(?!, please wait| per | processed)",
        r"(?:total )?number of tokens in the prompt|token limit exceeded",
        r"kv cache is full|exceeds? the context|context limit|context overflow",
        r"request (?:entity |body |payload )?(?:is )?too large(?! for [^.]{0,80}(?:per min|per day|tpm|tpd|rpm))|payload too large|content too large|request exceeds the maximum (?:allowed )?(?:size|number of bytes)",
        r"compact (?:the |your )?(?:conversation|context)|/compact",
        r"上下文[^。]{0,12}(?:超|过长|限制)|(?:prompt|输入|提示词|请求)[^。]{0,12}(?:超长|过长)|超(?:过|出)[^。]{0,16}(?:上下文|最大(?:输入)?长度|token)",
    ),
    "billing": _words(
        r"(?:out of|run out of|ran out of|no|not enough|insufficient|zero|negative|used all (?:available )?|used up (?:all )?(?:your |of your )?|exhausted (?:your )?|not have (?:any |enough |sufficient ))\s?(?:account |remaining |available |api |prepaid |included )?(?:credits?|balance|funds|quota balance)\b",
        r"(?:credits?|balance|funds)(?: balance)? (?:is|are|has been|have been|was)? ?(?:too low|exhausted|depleted|insufficient|not enough|empty|used up|required|negative)",
        r"credit balance|credit limit (?:exceeded|reached)|requires? (?:more |at least |available )?(?:credits|payment|billing|a (?:paid|valid credit|payment|subscription))",
        r"usage credits are required|extra usage is required|draw from your extra usage|monthly included credits|can only afford",
        r"payment (?:is )?(?:required|failed|declined|overdue|method)|past due|in arrears|overdue|unpaid|past invoices",
        r"spend(?:ing)? (?:cap|limit)|hard limit|budget (?:has been )?exceeded|over budget|out of budget|exceeded (?:your |the |its )?(?:monthly |daily )?(?:budget|spend)|maximum budget|key limit exceeded",
        r"billing (?:is )?(?:not (?:active|enabled)|exhausted|hard|disabled|quota|issue|problem)|check your billing|enable billing|billing to be enabled|plan and billing details|billing (?:account|information) (?:is|not|has)",
        r"insufficient[ -]quota|add (?:more )?credits to continue|please (?:recharge|top up)|top up your|recharge (?:and|your)",
        r"(?:subscription|plan|package) (?:has |is )?(?:expired|lapsed|inactive|cancell?ed|ended)|inactive subscription|no active subscription|requires a (?:paid )?subscription|upgrade to a paid|not included in your (?:plan|subscription)|with your chatgpt plan, upgrade",
        r"余额不足|欠费|请充值|充值后|账户余额|套餐(?:已)?(?:过期|到期)|资源包",
    ),
    "auth": _words(
        r"(?:invalid|incorrect|wrong|bad|missing|expired|no|revoked|unknown|malformed|disabled) (?:x-|your )?(?:api[ -]?key|apikey|access token|auth(?:entication|orization)? (?:token|header|credentials?)|bearer|credentials|subscription key|token\b(?! (?:count|limit|type|at|in)))",
        r"api[ -]?key (?:(?:is|was|has been|you provided|provided|not|that)\s?)*(?:invalid|incorrect|expired|missing|revoked|not valid|not found|disabled|required|valid|deleted|blocked|leaked|reported)",
        r"(?:did not|didn'?t|have not|must|need to) provide (?:an? |your )?api[ -]?key|set the api[ -]?key|no auth|api key not valid",
        r"unauthori[sz]ed|unauthenticated|not (?:logged|signed) in|(?:log|sign|signing|logging) ?in again|please run /login|re-?authenticat",
        r"authenticat(?:ion|e)(?: \w+){0,2} (?:fail|error|required|invalid|credentials|token)|failed to authenticate|authentication fails|could not authenticate|could not resolve authentication",
        r"(?:token|session|credential|credentials|security token included in the request|certificate-based login)(?: \w+){0,2} (?:expired|revoked|been invalidated)|token expired",
        r"permission[ -]?denied|access[ -](?:was )?denied|access to (?:this|the) model (?:is )?denied|(?:do not|don'?t|does not|doesn'?t|not) have (?:access|permission|authorization|the required)|(?:lacks?|insufficient|missing|without) (?:the )?(?:permission|scope|privilege)s?|not authori[sz]ed|no permission",
        r"(?:account|organization|organisation|project|workspace|team|key) (?:associated with this api key )?(?:has been|is|was) (?:disabled|deactivated|suspended|banned|restricted|locked|terminated)|must be verified to",
        r"country, region, or territory|not (?:available|supported) in your (?:country|region|location)|user location is not supported",
        r"\bforbidden\b|you have been blocked|proxy authentication required",
        r"身份验证|令牌(?:已过期|不正确|无效)|无效的?(?:api|密钥|令牌|token)|未授权|无权(?:限)?|鉴权|认证失败",
    ),
    "content_filter": _words(
        r"content[ -]?(?:filter|policy|management policy|moderation|violation)|content exists risk|responsible ?ai",
        r"(?<!fair )(?:usage|safety|acceptable use|use|cyber(?:security)?|terms of) polic(?:y|ies)|policy violation|violat(?:e|es|ed|ing|ion)[^.]{0,60}polic",
        r"(?:was|were|been|is|got) (?:flagged|moderated|filtered)|flagged (?:as|for|by)|requires moderation|moderation (?:failed|blocked|error)",
        r"safety (?:system|filter|reason|setting|check|guideline|classifier)s?|blocked (?:by|due to|because of|for) [^.]{0,30}(?:safety|content|policy|guardrail|moderat|prohibited|recitation)|block ?reason|prohibited content|prohibited use",
        r"(?:model|assistant|provider|claude) (?:has )?(?:refused|declined)|refused to (?:complete|answer|respond)|finish ?reason:? (?:content|safety|refusal|prohibited|recitation)|stop ?reason:? refusal|model refusal",
        r"guardrail|inappropriate content|unsafe content|sensitive content|data inspection|recitation",
        r"敏感|违规内容|不安全|内容安全|违反.{0,10}(?:政策|规定)",
    ),
    "invalid_request": _words(
        r"invalid (?:request|argument|param|parameter|value|type|schema|model|json|tool|function|input|message|role|image|url|format|body|field|payload|max tokens|'|\")|is not (?:a )?valid\b|not valid json|malformed (?:input|request|json|body)|bad request",
        r"(?:unsupported|unknown|unrecognized|unexpected|unpermitted) (?:parameter|field|argument|value|model|property|keyword|key|option|request|role|media|content|message|name|endpoint)",
        r"(?:is|are|was|isn'?t|not) (?:currently |yet )?(?:not )?supported\b|does(?: not|n'?t) support|not support(?:ed)? (?:by|for|with|tool)|no longer (?:supported|available)|deprecated|decommissioned|has been (?:retired|removed|shut down)",
        r"(?:missing|requires?) (?:a )?(?:required )?(?:parameter|field|property|argument)|field required|required propert|extra inputs are not permitted|additional ?properties|validation error|failed to deserialize|cannot be modified|could not parse (?:the )?json|input should be",
        r"(?:model|deployment|endpoint|resource|path|route|page|item|response|file|project|tool|function call|method|url|engine) (?:id )?(?:['\"(]?[\w./:@-]{1,80}['\")]? )?(?:was |is |could |can )?(?:not|n't) (?:be )?found|(?:model|deployment|resource|endpoint) .{0,80}does not exist|no such (?:model|deployment)|could not find (?:the )?model|no endpoints found|no allowed providers|no models? (?:are )?loaded|(?<!host )(?<!server )(?<!address )(?<!name )(?<!domain )not found",
        r"tool use ids|tool result blocks?|tool call id|tool calls? must be followed|no tool (?:output|call) found|without its required|must (?:be followed by|be a response|alternate|start with|end with|not be empty|be non-?empty|contain|have non-?empty)|non-?empty content|text content blocks|expected last role|roles must",
        r"max(?:imum)?[ -]?(?:output |completion |new )?tokens?\W{0,3} ?(?:: ?\d+ ?>|is too large|must be|should be|cannot)|maximum allowed number of output tokens|maximum tokens you requested|supports at most \d+ (?:completion|output) tokens",
        r"(?:message|body|payload|image|file|document|attachment|pdf) (?:size|dimensions?)?[^.]{0,40}exceeds? (?:the )?(?:limit|max)|exceeds limit \d+|request too large for|must be reduced in order to run",
        r"fair usage policy|more system memory|certificate verif|certificate has expired|self[ -]signed certificate|unable to (?:verify|get) .{0,30}certificate|hostname mismatch|wrong version number|unknown url|unsupported protocol|missing an 'http",
        r"参数(?:错误|无效|有误|不合法)|模型不存在|不支持|请求格式",
    ),
    "output_truncated": _words(
        r"(?:output|response|completion|reply|answer|generation|message)[^.]{0,60}(?:truncated|cut (?:off|short))",
        r"(?:hit|reached|exceed(?:ed|s)?)[^.]{0,40}(?:output token|max (?:output |completion |new )?tokens|maximum (?:output|completion)|output limit|completion token)",
        r"(?:max (?:output |completion |new )?tokens|output tokens?(?: limit| maximum| cap)?|completion tokens?(?: limit)?|output limit|maximum output)[^.]{0,40}(?:hit|reached|exceeded|truncated|cut (?:off|short))",
        r"(?:finish|stop|incomplete)[ -]?reason\W{1,4}(?:length|max ?(?:output )?tokens)\b|incomplete: max output tokens",
        r"(?:output|response)(?: was| is)? (?:too long|incomplete)|output token maximum",
    ),
    "usage_limit": _words(
        r"usage limits?|usage[ -]cap|(?:session|weekly|daily|monthly|hourly|\d+[ -]?hour|five[ -]hour|seven[ -]day|opus|sonnet|premium|plan|global)[ -](?:usage |rate |token |request |message |model )*(?:limit|quota|cap|allowance)s?\b(?! per)",
        r"(?:tokens?|requests?|messages?|calls?|queries|units|neurons|limit\w*)[ -](?:\w+ )?per[ -]?(?:day|hour|week|month)|per[ -](?:day|week|month|hour)\b|\d ?\w* ?/ ?(?:day|month|week|hour)\b|byday|perday|\((?:tpd|rpd|asd|ash)\)|\b(?:tpd|rpd)\b",
        r"(?:hit|reached) your (?:(?!rate |concurren)[\w.-]+ ){0,3}limit|limit (?:will )?resets? |limit reached[ ∙·•|-]+resets?|global rate limit|out of extra usage",
        r"quota (?:has been |is |was |will )?(?:exceeded|exhausted|reset|refresh|used up|reached|limit)|exhausted (?:your |the |all )?(?:\w+ ){0,2}(?:capacity|quota|limit)|exceeded (?:your |the |its )?(?:\w+ ){0,3}quota|(?:quota|allowance|allocation)[^.]{0,20}(?:exceeded|exhausted|used up)|premium request|copilot token usage|restricts the number of copilot|exceed(?:s|ed)? the service quota",
        r"使用上限|用量上限|限额|额度(?:已|不足)|每[日天周月]|(?:今|当)[日天]|配额",
    ),
    "empty": _words(
        r"empty (?:response|reply|completion|message|output|content|assistant|stream|result|text|candidates?|choices)(?! from server)|(?:response|reply|completion|output|content|message) (?:was|is|came back|body is) (?:empty|blank)",
        r"no (?:content|output|text|choices|candidates|completion|assistant (?:message|response)|response (?:text|content|body|candidates|choices)|usable (?:output|content))(?: \w+){0,3} (?:in|from|was|were|received|returned|generated|produced|found)|no (?:output|content) generated",
        r"(?:returned|produced|generated|contained|contains|with|without|ended with|returns?) (?:any |an? )?(?:no|empty|zero|blank|(?<=without any )|(?<=without ))\s?(?:usable |visible |assistant )?(?:content|output|text|response|message|choices|candidates|parts|completion)",
        r"(?:did not|didn'?t) (?:return|produce|generate|contain|include) (?:any|a) (?:\w+ )?(?:content|output|text|response|message|choices|candidates)",
        r"返回(?:了)?(?:内容)?(?:为)?空|空响应|空回复",
    ),
    "transient": _words(
        r"over ?-?load|at capacity|capacity (?:exceeded|constraint|limit)|no capacity|high (?:demand|traffic|load|concurrency|volume)|peak load|too busy|\bbusy\b|server load",
        r"temporar(?:y|ily)|unavailable|try (?:again|your request again)|please retry|(?:can|may|should) retry|retry (?:your|the) request|retry later|please wait|not ready|loading model|model is (?:currently )?loading|model unloaded|warming up|maintenance",
        r"(?:server|internal|service|backend|upstream|provider|gateway|unexpected|proxy|api|processing|inference|system)[ -](?:\w+ )?(?:error|failure|exception)|error (?:occurred )?(?:while|when|during) (?:processing|streaming|generating)|something went wrong|bad gateway|gateway time|had an error|returned an? (?:invalid|error|unknown)|returning an unknown error|returned error|model has crashed",
        r"time[ds]?[ -]?out|timeout|deadline (?:exceeded|expired)|took too long|no response (?:received|from|within)|stalled|idle for|did(?: not|n'?t) (?:respond|get a response)",
        r"terminated|socket hang up|fetch failed|failed to fetch|load failed|premature|broken pipe|incomplete (?:read|chunk|stream|response|message)|incompleteread|unexpected (?:eof|end of)|\beof\b|hang ?up|goaway|rst ?stream|http/?2|stream (?:error|id|reset)|transfer closed|reset by peer|reset before headers|empty reply from server",
        r"(?:network|connection|connect|socket|websocket|stream|transport|tls|ssl|handshake|proxy|tunnel|dns|peer|host|body|wire)[^.]{0,60}(?:error|lost|closed?|closing|reset|refused|fail|abort|broken|disconnect|interrupt|unreachable|drop|ended|ends|end(?:ing)? unexpectedly|end before|timed|terminated|without|aborted|changed|eof|down|problem)",
        r"(?:error|fail(?:ed|ure)?|unable|could ?n[o']t|cannot)[^.]{0,30}(?:connect|network|reading (?:body|response|stream)|decoding response body|resolve host|send(?:ing)? request|read (?:body|response|stream)|reach)|all connection attempts failed|disconnected|name resolution|name or service not known|nodename nor servname|getaddrinfo|no route to host|no address associated|couldn'?t connect",
        r"\babort(?:ed|ing)?\b.{0,20}(?:due to|timeout)|finish reason:? (?:error|network error|malformed|unexpected tool)|network error|no healthy upstream|no available (?:model )?provider|exceeded retry limit|all (?:providers|upstreams|targets) failed",
        r"请稍后|稍后(?:再|重)试|繁忙|速率限制|过于频繁|频率|访问量过大|并发|网络错误|超时|服务(?:不可用|异常)|请求过多|内部错误",
    ),
}
"""Words, looked for in the order of PRECEDENCE."""

FIXABLE: Final[Mapping[FailureClass, str]] = {
    "auth": "Check the key or sign in again (`handrail doctor` says which key is used), and that it may use this model.",
    "billing": "Add credits, raise the spend cap or change the plan with the provider, or take another model (`--model`).",
    "content_filter": "The provider will not answer this. Reword the request, leave out what it objects to, or take another model.",
    "invalid_request": "The request can never work as it is. Check the model's name, the API (`--api`, `--base-url`) and the limits asked for.",
    "context_overflow": "The conversation is larger than the model's window. Compact it (`/compact`), or take a model with a larger one.",
    "unknown": "Nobody can tell from these words whether asking again helps. Read them, and resume by hand if it does.",
}
"""What a person can do about a class that nobody waits for (rule R15)."""
