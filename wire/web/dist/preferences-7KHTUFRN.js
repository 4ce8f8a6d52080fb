import{a as o}from"./chunk-AP3UIDX7.js";import"./chunk-HDDYEEFF.js";import"./chunk-AUGD363A.js";import"./chunk-HPKC5SJS.js";export{o as Preferences};
