import{a as o}from"./chunk-YJWKF3VN.js";import"./chunk-WVHMKTDL.js";import"./chunk-7MLLDERD.js";import"./chunk-XVLHEEAR.js";import"./chunk-UXYZ5QGE.js";export{o as Preferences};
