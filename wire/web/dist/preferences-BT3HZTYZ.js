import{a as o}from"./chunk-ML236BGM.js";import"./chunk-KVKCHTYI.js";import"./chunk-YOHDM7XK.js";import"./chunk-2ASQJOHF.js";export{o as Preferences};
