import{a as o}from"./chunk-WPZFFCYB.js";import"./chunk-VPZTORLX.js";import"./chunk-ZQENERSY.js";import"./chunk-YB3CZXZX.js";export{o as Privacy};
