"""What vendors' names mean: codes, types, stop reasons, exceptions (rules K1, K2, K4, U6).

Names are squashed (`squash`): lower case, letters and digits only. A name says more than words; the weak ones say so
little that words come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from handrail.messages import FailureClass

PRECEDENCE: Final[tuple[FailureClass, ...]] = (
    "context_overflow",
    "billing",
    "auth",
    "content_filter",
    "invalid_request",
    "output_truncated",
    "usage_limit",
    "empty",
    "transient",
)
"""Which class wins where one text speaks of several (rule R1): overflow over permanent, permanent over transient."""


def name_set(names: str) -> frozenset[str]:
    """Squashed names, parted by blanks."""
    return frozenset(names.split())


def _table(rows: Mapping[FailureClass, str]) -> dict[str, FailureClass]:
    return {name: class_ for class_, names in rows.items() for name in names.split()}


NAMES: Final[Mapping[str, FailureClass]] = _table(
    {
        "context_overflow": """
            contextlengthexceeded contextwindowexceeded contextwindowexceedederror modelcontextwindowexceeded
            exceedcontextsizeerror requesttoolarge contextlimitexceeded contextoverflow contextlengtherror inputtoolong
            prompttoolong maxcontextlengthexceeded modelmaxprompttokensexceeded maxprompttokensexceeded
            inputtokenlimitexceeded tokenslimitreached
        """,
        "billing": """
            insufficientquota billinghardlimitreached billingnotactive billingerror billingdisabled insufficientbalance
            insufficientcredits insufficientcredit insufficientfunds creditsrequired creditserror outofcredits nocredits
            paymentrequired paymentrequirederror workspaceownercreditsdepleted workspacemembercreditsdepleted arrearage
            exceededcurrentquotaerror accountoverdueerror accountoverdue budgetexceeded usagenotincluded freetieronly
            spendlimitreached spendlimitexceeded spendinglimitreached balancenotenough allocationquotafreetieronly
            invalidpaymentinstrument insufficientuserquota preconsumetokenquotafailed balancedepleted
            subscriptionrequired subscriptionexpired
        """,
        "auth": """
            invalidapikey invalidapikeyerror incorrectapikey apikeyinvalid apikeyexpired apikeyserviceblocked
            apikeyhttpreferrerblocked authenticationerror authenticationfailed authenticationfailederror invalidgrant
            invalidauthentication invalidauthenticationerror expiredtoken expiredtokenexception tokenexpired
            tokeninvalid tokeninvalidated refreshtokenexpired refreshtokenreused refreshtokeninvalidated
            unrecognizedclientexception invalidsignatureexception incompletesignature incompletesignatureexception
            missingauthenticationtoken missingauthenticationtokenexception invalidclienttokenid accountdeactivated
            unsupportedcountryregionterritory servicedisabled organizationrestricted ipnotauthorized
            mismatchedorganization invalidorganization insufficientpermissions
        """,
        "content_filter": """
            contentfilter contentfiltered contentpolicyviolation contentpolicyviolationerror contentmoderation
            responsibleaipolicyviolation moderationblocked prohibitedcontent datainspectionfailed guardrailintervened
            cyberpolicy cyberpolicyviolation invalidprompt unsafecontent imagesafety imageprohibitedcontent
        """,
        "invalid_request": """
            modelnotfound deploymentnotfound invalidmodel nosuchmodel modelnotsupported unsupportedmodel modelnotallowed
            modeldecommissioned modeldeprecated unsupportedapiforthemodel unsupportedapiformodel unsupportedparameter
            unsupportedvalue unknownparameter missingrequiredparameter invalidtype invalidfunctionparameters
            integerbelowminvalue integerabovemaxvalue decimalabovemaxvalue decimalbelowminvalue arrayabovemaxlength
            emptyarray extraforbidden operationnotsupported unsupportedapiversion invalidimage invalidimageurl
            imageparseerror invalidencryptedcontent previousresponsenotfound invalidrequestmessageorder errinvalidurl
            unsupportedprotocol invalidurl localprotocolerror
            certverifyfailed certificateverifyfailed depthzeroselfsignedcert selfsignedcertinchain certhasexpired
            unabletoverifyleafsignature unabletogetissuercertlocally errtlscertaltnameinvalid wrongversionnumber
        """,
        "output_truncated": "maxoutputtokens maxtokensreached outputlimitreached maxoutputreached",
        "usage_limit": """
            usagelimitreached usagelimitexceeded workspaceownerusagelimitreached workspacememberusagelimitreached
            subscriptionsharingusagelimitexceeded freeusagelimiterror gousagelimiterror userglobalratelimited
            userweeklyratelimited quotaexceeded quotaexhausted accountquotaexceeded dailylimitexceeded
            weeklylimitexceeded monthlylimitexceeded servicequotaexceededexception servicequotaexceeded
        """,
        "transient": """
            overloadederror overloaded serverisoverloaded serveroverloaded modeloverloaded engineoverloadederror
            slowdown
            modelcapacityexhausted servicetiercapacityexceeded capacityexceeded nocapacity queueexceeded
            concurrencylimitexceeded toomanyconcurrentrequests websocketconnectionlimitreached
            insufficientsystemresource
            modelerrorexception modelstreamerrorexception modeltimeoutexception modelnotreadyexception modelcrashed
            toolusefailed jsonvalidatefailed outputparsefailed malformedfunctioncall malformedtoolcall
            unexpectedtoolcall
            malformedresponse streamreaderror enotfound eaiagain econnreset econnrefused
            econnaborted etimedout epipe ehostunreach
            enetunreach enetdown ehostdown underrsocket underrconnecttimeout underrheaderstimeout underrbodytimeout
            errstreamprematureclose errhttp2streamerror errhttp2sessionerror remoteprotocolerror connecterror
            connecttimeout readtimeout readerror writeerror writetimeout pooltimeout incompleteread remotedisconnected
            chunkedencodingerror serverdisconnectederror clientpayloaderror clientoserror clientconnectorerror
            connectionreseterror connectionrefusederror connectionabortederror brokenpipeerror
        """,
    }
)
"""Names that say enough alone, in a field or standing in a text."""

WEAK: Final[Mapping[str, FailureClass]] = _table(
    {
        "transient": """
            ratelimiterror ratelimitexceeded ratelimitreachederror ratelimitreached ratelimited resourceexhausted
            throttlingexception throttled throttling throttlingerror throttlingratequota throttlingallocationquota
            toomanyrequests toomanyrequestsexception toomanyrequestserror toomanytokenserror tokenquotaexceeded
            requestquotaexceeded apierror servererror internalservererror internalserverexception internal internalerror
            internalfailure timeouterror timeout requesttimeout gatewaytimeout badgateway serviceunavailable
            serviceunavailableexception serviceunavailableerror unavailable unavailableerror deadlineexceeded
            networkerror upstreamerror streamerror connectionerror apiconnectionerror apitimeouterror
        """,
        "auth": """
            permissiondenied permissiondeniederror permissionerror accessdenied accessdeniedexception accessdeniederror
            unauthorized unauthenticated forbidden notauthorized accountnotactive nopermission modelaccessdenied
            requestforbidden
        """,
        "invalid_request": """
            invalidrequesterror invalidrequest invalidargument invalidparameter invalidparametererror invalidvalue
            invalidjson validationexception validationerror badrequest badrequesterror badrequestexception notfound
            notfounderror resourcenotfoundexception resourcenotfound failedprecondition outofrange unimplemented
            unprocessableentityerror unprocessableentity methodnotallowed unsupportedoperation
        """,
    }
)
"""Names that a vendor gives to many things: they decide only where no words do."""

OF_THE_WAY: Final = name_set(
    """
    apierror servererror internalservererror internalserverexception internal internalerror internalfailure
    networkerror upstreamerror streamerror connectionerror apiconnectionerror apitimeouterror badgateway
    """
)
"""Weak names that gateways give to whatever came back: a status that refuses says more."""

FINISH_KEYS: Final = frozenset({"finishreason", "stopreason", "nativefinishreason", "reason"})
FINISH: Final[Mapping[str, FailureClass]] = _table(
    {
        "output_truncated": "length maxtokens maxoutputtokens",
        "content_filter": "contentfilter refusal sensitive safety recitation blocklist spii prohibitedcontent",
        "context_overflow": "modelcontextwindowexceeded modellength",
        "transient": "networkerror insufficientsystemresource malformedfunctioncall unexpectedtoolcall abort",
    }
)
"""A stop reason that stands where an error was expected."""

NUMBERED: Final[Mapping[str, Mapping[str, FailureClass]]] = {
    "zai": _table(
        {
            "auth": "1000 1001 1002 1003 1004 1110 1111 1112 1120 1121 1220",
            "billing": "1113 1309 1311",
            "invalid_request": "1210 1211 1212 1213 1214 1215 1221 1222 1313",
            "context_overflow": "1261",
            "content_filter": "1300 1301",
            "transient": "1230 1234 1302 1303 1305 1312",
            "usage_limit": "1304 1308 1310",
        }
    ),
    "minimax": _table(
        {
            "transient": "1000 1001 1002 1013 1024 1033",
            "auth": "1004 2049",
            "billing": "1008",
            "content_filter": "1026 1027",
            "context_overflow": "1039",
            "usage_limit": "2056",
        }
    ),
    "mistral": {"3505": "transient", "1300": "transient"},
}
"""Numbered codes; a number means nothing without its vendor (rule K4)."""

_VENDORS: Final[Mapping[str, str]] = {
    "zai": "zai zhipu bigmodel glm",
    "google": "google gemini vertex antigravity",
    "dashscope": "dashscope alibaba qwen bailian aliyun modelstudio",
    "minimax": "minimax",
    "mistral": "mistral",
    "volcengine": "volc doubao",
    "siliconflow": "siliconflow",
}
IN_BEIJING: Final = frozenset({"zai", "dashscope", "minimax", "volcengine", "siliconflow"})
"""Vendors whose wall times are Beijing's, whatever language they are written in (rule U2)."""


def vendor_of(provider: str) -> str:
    """The vendor behind the names under which people configure it: `zhipuai-coding-plan` is `zai`. `provider` is
    squashed."""
    return next((v for v, marks in _VENDORS.items() if any(m in provider for m in marks.split())), provider)
