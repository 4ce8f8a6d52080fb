import"./chunk-74IXTQGT.js";function H(e){for(var r=1;r<arguments.length;r++){var t=arguments[r];for(var n in t)Object.prototype.hasOwnProperty.call(t,n)&&(e[n]=t[n])}return e}function v(e,r){return Array(r+1).join(e)}function C(e){return e.replace(/^\n*/,"")}function b(e){for(var r=e.length;r>0&&e[r-1]===`
`;)r--;return e.substring(0,r)}function S(e){return b(C(e))}var F=["ADDRESS","ARTICLE","ASIDE","AUDIO","BLOCKQUOTE","BODY","CANVAS","CENTER","DD","DIR","DIV","DL","DT","FIELDSET","FIGCAPTION","FIGURE","FOOTER","FORM","FRAMESET","H1","H2","H3","H4","H5","H6","HEADER","HGROUP","HR","HTML","ISINDEX","LI","MAIN","MENU","NAV","NOFRAMES","NOSCRIPT","OL","OUTPUT","P","PRE","SECTION","TABLE","TBODY","TD","TFOOT","TH","THEAD","TR","UL"];function A(e){return k(e,F)}var w=["AREA","BASE","BR","COL","COMMAND","EMBED","HR","IMG","INPUT","KEYGEN","LINK","META","PARAM","SOURCE","TRACK","WBR"];function O(e){return k(e,w)}function $(e){return B(e,w)}var D=["A","TABLE","THEAD","TBODY","TFOOT","TH","TD","IFRAME","SCRIPT","AUDIO","VIDEO"];function V(e){return k(e,D)}function U(e){return B(e,D)}function k(e,r){return r.indexOf(e.nodeName)>=0}function B(e,r){return e.getElementsByTagName&&r.some(function(t){return e.getElementsByTagName(t).length})}var W=[[/\\/g,"\\\\"],[/\*/g,"\\*"],[/^-/g,"\\-"],[/^\+ /g,"\\+ "],[/^(=+)/g,"\\$1"],[/^(#{1,6}) /g,"\\$1 "],[/`/g,"\\`"],[/^~~~/g,"\\~~~"],[/\[/g,"\\["],[/\]/g,"\\]"],[/^>/g,"\\>"],[/_/g,"\\_"],[/^(\d+)\. /g,"$1\\. "]];function L(e){return W.reduce(function(r,t){return r.replace(t[0],t[1])},e)}var o={};o.paragraph={filter:"p",replacement:function(e){return`

`+e+`

`}};o.lineBreak={filter:"br",replacement:function(e,r,t){return t.br+`
`}};o.heading={filter:["h1","h2","h3","h4","h5","h6"],replacement:function(e,r,t){var n=Number(r.nodeName.charAt(1));if(t.headingStyle==="setext"&&n<3){var i=v(n===1?"=":"-",e.length);return`

`+e+`
`+i+`

`}else return`

`+v("#",n)+" "+e+`

`}};o.blockquote={filter:"blockquote",replacement:function(e){return e=S(e).replace(/^/gm,"> "),`

`+e+`

`}};o.list={filter:["ul","ol"],replacement:function(e,r){var t=r.parentNode;return t.nodeName==="LI"&&t.lastElementChild===r?`
`+e:`

`+e+`

`}};o.listItem={filter:"li",replacement:function(e,r,t){var n=t.bulletListMarker+"   ",i=r.parentNode;if(i.nodeName==="OL"){var a=i.getAttribute("start"),s=Array.prototype.indexOf.call(i.children,r);n=(a?Number(a)+s:s+1)+".  "}var f=/\n$/.test(e);return e=S(e)+(f?`
`:""),e=e.replace(/\n/gm,`
`+" ".repeat(n.length)),n+e+(r.nextSibling?`
`:"")}};o.indentedCodeBlock={filter:function(e,r){return r.codeBlockStyle==="indented"&&e.nodeName==="PRE"&&e.firstChild&&e.firstChild.nodeName==="CODE"},replacement:function(e,r,t){return`

    `+r.firstChild.textContent.replace(/\n/g,`
    `)+`

`}};o.fencedCodeBlock={filter:function(e,r){return r.codeBlockStyle==="fenced"&&e.nodeName==="PRE"&&e.firstChild&&e.firstChild.nodeName==="CODE"},replacement:function(e,r,t){for(var n=r.firstChild.getAttribute("class")||"",i=(n.match(/language-(\S+)/)||[null,""])[1],a=r.firstChild.textContent,s=t.fence.charAt(0),f=3,l=new RegExp("^"+s+"{3,}","gm"),u;u=l.exec(a);)u[0].length>=f&&(f=u[0].length+1);var h=v(s,f);return`

`+h+i+`
`+a.replace(/\n$/,"")+`
`+h+`

`}};o.horizontalRule={filter:"hr",replacement:function(e,r,t){return`

`+t.hr+`

`}};o.inlineLink={filter:function(e,r){return r.linkStyle==="inlined"&&e.nodeName==="A"&&e.getAttribute("href")},replacement:function(e,r){var t=N(r.getAttribute("href")),n=y(p(r.getAttribute("title"))),i=n?' "'+n+'"':"";return"["+e+"]("+t+i+")"}};o.referenceLink={filter:function(e,r){return r.linkStyle==="referenced"&&e.nodeName==="A"&&e.getAttribute("href")},replacement:function(e,r,t){var n=N(r.getAttribute("href")),i=p(r.getAttribute("title"));i&&(i=' "'+y(i)+'"');var a,s;switch(t.linkReferenceStyle){case"collapsed":a="["+e+"][]",s="["+e+"]: "+n+i;break;case"shortcut":a="["+e+"]",s="["+e+"]: "+n+i;break;default:var f=this.references.length+1;a="["+e+"]["+f+"]",s="["+f+"]: "+n+i}return this.references.push(s),a},references:[],append:function(e){var r="";return this.references.length&&(r=`

`+this.references.join(`
`)+`

`,this.references=[]),r}};o.emphasis={filter:["em","i"],replacement:function(e,r,t){return e.trim()?t.emDelimiter+e+t.emDelimiter:""}};o.strong={filter:["strong","b"],replacement:function(e,r,t){return e.trim()?t.strongDelimiter+e+t.strongDelimiter:""}};o.code={filter:function(e){var r=e.previousSibling||e.nextSibling,t=e.parentNode.nodeName==="PRE"&&!r;return e.nodeName==="CODE"&&!t},replacement:function(e){if(!e)return"";e=e.replace(/\r?\n|\r/g," ");for(var r=/^`|^ .*?[^ ].* $|`$/.test(e)?" ":"",t="`",n=e.match(/`+/gm)||[];n.indexOf(t)!==-1;)t=t+"`";return t+r+e+r+t}};o.image={filter:"img",replacement:function(e,r){var t=L(p(r.getAttribute("alt"))),n=N(r.getAttribute("src")||""),i=p(r.getAttribute("title")),a=i?' "'+y(i)+'"':"";return n?"!["+t+"]("+n+a+")":""}};function p(e){return e?e.replace(/(\n+\s*)+/g,`
`):""}function N(e){var r=e.replace(/([<>()])/g,"\\$1");return r.indexOf(" ")>=0?"<"+r+">":r}function y(e){return e.replace(/"/g,'\\"')}function M(e){this.options=e,this._keep=[],this._remove=[],this.blankRule={replacement:e.blankReplacement},this.keepReplacement=e.keepReplacement,this.defaultRule={replacement:e.defaultReplacement},this.array=[];for(var r in e.rules)this.array.push(e.rules[r])}M.prototype={add:function(e,r){this.array.unshift(r)},keep:function(e){this._keep.unshift({filter:e,replacement:this.keepReplacement})},remove:function(e){this._remove.unshift({filter:e,replacement:function(){return""}})},forNode:function(e){if(e.isBlank)return this.blankRule;var r;return(r=m(this.array,e,this.options))||(r=m(this._keep,e,this.options))||(r=m(this._remove,e,this.options))?r:this.defaultRule},forEach:function(e){for(var r=0;r<this.array.length;r++)e(this.array[r],r)}};function m(e,r,t){for(var n=0;n<e.length;n++){var i=e[n];if(_(i,r,t))return i}}function _(e,r,t){var n=e.filter;if(typeof n=="string"){if(n===r.nodeName.toLowerCase())return!0}else if(Array.isArray(n)){if(n.indexOf(r.nodeName.toLowerCase())>-1)return!0}else if(typeof n=="function"){if(n.call(e,r,t))return!0}else throw new TypeError("`filter` needs to be a string, array, or function")}function j(e){var r=e.element,t=e.isBlock,n=e.isVoid,i=e.isPre||function(I){return I.nodeName==="PRE"};if(!(!r.firstChild||i(r))){for(var a=null,s=!1,f=null,l=E(f,r,i);l!==r;){if(l.nodeType===3||l.nodeType===4){var u=l.data.replace(/[ \r\n\t]+/g," ");if((!a||/ $/.test(a.data))&&!s&&u[0]===" "&&(u=u.substr(1)),!u){l=d(l);continue}l.data=u,a=l}else if(l.nodeType===1)t(l)||l.nodeName==="BR"?(a&&(a.data=a.data.replace(/ $/,"")),a=null,s=!1):n(l)||i(l)?(a=null,s=!0):a&&(s=!1);else{l=d(l);continue}var h=E(f,l,i);f=l,l=h}a&&(a.data=a.data.replace(/ $/,""),a.data||d(a))}}function d(e){var r=e.nextSibling||e.parentNode;return e.parentNode.removeChild(e),r}function E(e,r,t){return e&&e.parentNode===r||t(r)?r.nextSibling||r.parentNode:r.firstChild||r.nextSibling||r.parentNode}var T=typeof window<"u"?window:{};function q(){var e=T.DOMParser,r=!1;try{new e().parseFromString("","text/html")&&(r=!0)}catch{}return r}function G(){var e=function(){};return X()?e.prototype.parseFromString=function(r){var t=new window.ActiveXObject("htmlfile");return t.designMode="on",t.open(),t.write(r),t.close(),t}:e.prototype.parseFromString=function(r){var t=document.implementation.createHTMLDocument("");return t.open(),t.write(r),t.close(),t},e}function X(){var e=!1;try{document.implementation.createHTMLDocument("").open()}catch{T.ActiveXObject&&(e=!0)}return e}var K=q()?T.DOMParser:G();function Y(e,r){var t;if(typeof e=="string"){var n=z().parseFromString('<x-turndown id="turndown-root">'+e+"</x-turndown>","text/html");t=n.getElementById("turndown-root")}else t=e.cloneNode(!0);return j({element:t,isBlock:A,isVoid:O,isPre:r.preformattedCode?Q:null}),t}var g;function z(){return g=g||new K,g}function Q(e){return e.nodeName==="PRE"||e.nodeName==="CODE"}function J(e,r){return e.isBlock=A(e),e.isCode=e.nodeName==="CODE"||e.parentNode.isCode,e.isBlank=Z(e),e.flankingWhitespace=ee(e,r),e}function Z(e){return!O(e)&&!V(e)&&/^\s*$/i.test(e.textContent)&&!$(e)&&!U(e)}function ee(e,r){if(e.isBlock||r.preformattedCode&&e.isCode)return{leading:"",trailing:""};var t=re(e.textContent);return t.leadingAscii&&R("left",e,r)&&(t.leading=t.leadingNonAscii),t.trailingAscii&&R("right",e,r)&&(t.trailing=t.trailingNonAscii),{leading:t.leading,trailing:t.trailing}}function re(e){var r=e.match(/^(([ \t\r\n]*)(\s*))(?:(?=\S)[\s\S]*\S)?((\s*?)([ \t\r\n]*))$/);return{leading:r[1],leadingAscii:r[2],leadingNonAscii:r[3],trailing:r[4],trailingNonAscii:r[5],trailingAscii:r[6]}}function R(e,r,t){var n,i,a;return e==="left"?(n=r.previousSibling,i=/ $/):(n=r.nextSibling,i=/^ /),n&&(n.nodeType===3?a=i.test(n.nodeValue):t.preformattedCode&&n.nodeName==="CODE"?a=!1:n.nodeType===1&&!A(n)&&(a=i.test(n.textContent))),a}var te=Array.prototype.reduce;function c(e){if(!(this instanceof c))return new c(e);var r={rules:o,headingStyle:"setext",hr:"* * *",bulletListMarker:"*",codeBlockStyle:"indented",fence:"```",emDelimiter:"_",strongDelimiter:"**",linkStyle:"inlined",linkReferenceStyle:"full",br:"  ",preformattedCode:!1,blankReplacement:function(t,n){return n.isBlock?`

`:""},keepReplacement:function(t,n){return n.isBlock?`

`+n.outerHTML+`

`:n.outerHTML},defaultReplacement:function(t,n){return n.isBlock?`

`+t+`

`:t}};this.options=H({},r,e),this.rules=new M(this.options)}c.prototype={turndown:function(e){if(!ae(e))throw new TypeError(e+" is not a string, or an element/document/fragment node.");if(e==="")return"";var r=P.call(this,new Y(e,this.options));return ne.call(this,r)},use:function(e){if(Array.isArray(e))for(var r=0;r<e.length;r++)this.use(e[r]);else if(typeof e=="function")e(this);else throw new TypeError("plugin must be a Function or an Array of Functions");return this},addRule:function(e,r){return this.rules.add(e,r),this},keep:function(e){return this.rules.keep(e),this},remove:function(e){return this.rules.remove(e),this},escape:function(e){return L(e)}};function P(e){var r=this;return te.call(e.childNodes,function(t,n){n=new J(n,r.options);var i="";return n.nodeType===3?i=n.isCode?n.nodeValue:r.escape(n.nodeValue):n.nodeType===1&&(i=ie.call(r,n)),x(t,i),t},[])}function ne(e){var r=this;return this.rules.forEach(function(t){typeof t.append=="function"&&x(e,t.append(r.options))}),e.join("").replace(/^[\t\r\n]+/,"").replace(/[\t\r\n\s]+$/,"")}function ie(e){var r=this.rules.forNode(e),t=P.call(this,e).join(""),n=e.flankingWhitespace;return(n.leading||n.trailing)&&(t=t.trim()),n.leading+r.replacement(t,e,this.options)+n.trailing}function x(e,r){var t=e.pop()||"",n=b(t),i=C(r),a=Math.max(t.length-n.length,r.length-i.length),s=`

`.substring(0,a);n&&e.push(n),s&&e.push(s),i&&e.push(i)}function ae(e){return e!=null&&(typeof e=="string"||e.nodeType&&(e.nodeType===1||e.nodeType===9||e.nodeType===11))}function fe(e){for(let t of e.querySelectorAll("script, style, meta, title"))t.remove();for(let t of e.querySelectorAll("b"))t.querySelector("p, ul, ol, div, h1, h2, h3")&&t.replaceWith(...t.childNodes);let r=new c({headingStyle:"atx",bulletListMarker:"*",codeBlockStyle:"fenced",emDelimiter:"*",hr:"---"});return r.escape=t=>t,r.addRule("struck",{filter:["del","s"],replacement:t=>`~~${t}~~`}),r.addRule("image",{filter:"img",replacement:(t,n)=>n.alt}),r.addRule("link",{filter:t=>t.nodeName==="A"&&!!t.getAttribute("href"),replacement:(t,n)=>le(t,n.getAttribute("href"))}),r.turndown(e).replace(/^(\s*[*\d.]+)\s{2,}/gm,"$1 ")}function le(e,r){return/^(https?|mailto):/.test(r)?e===r||e===""?r:`[${e}](${r})`:e}export{fe as markdownOf};
