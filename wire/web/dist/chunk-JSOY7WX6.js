import{e as t}from"./chunk-23JIVSNS.js";function n(e){return new Intl.DateTimeFormat(t(),{dateStyle:"medium",timeStyle:"short"}).format(new Date(e*1e3))}export{n as a};
